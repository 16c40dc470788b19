"""Every op of the engine: each module in this folder registers its own rows (see registry.py)."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
