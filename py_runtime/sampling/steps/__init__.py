"""The steps that come with the engine, one file each; importing this room registers them.

To add one, add a file; nothing else lists them.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")
