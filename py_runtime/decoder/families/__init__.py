"""All families: the files of this folder, each of which ends with its GROUP.

To add a family, add a file; nothing else lists them.
"""

from importlib import import_module
from pkgutil import iter_modules

from py_runtime.decoder.family import Family, FamilyGroup

GROUPS: tuple[FamilyGroup, ...] = tuple(
    import_module(f"{__name__}.{name}").GROUP
    for name in sorted(module.name for module in iter_modules(__path__))
)
FAMILIES: tuple[Family, ...] = tuple(family for group in GROUPS for family in group.families)
BY_MODEL_TYPE = {family.model_type: family for family in FAMILIES}
BY_ARCHITECTURE = {
    family.gguf.architecture: family for family in FAMILIES if family.gguf.architecture is not None
}
SUPPORTED = f"{', '.join(BY_MODEL_TYPE)} ({', '.join(family.known_as for family in FAMILIES)})"
