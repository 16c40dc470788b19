"""Kernels joined from WGSL files, each of which declares what it needs (see shader_sources.py).

The declared needs are compared with what the file uses: a fragment too few or too many is an error
here, before the GPU sees anything.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from py_runtime.base.errors import GraphError
from py_runtime.gpu.second_copies import SECOND, copy_of, with_second_copies
from py_runtime.gpu.shader_figures import figures_in, workgroup_bytes, workgroup_size
from py_runtime.gpu.shader_sources import DIRECTIVE, STAR, Library, ShaderFile, all_shaders

PARAMS = "params"  # the WGSL name of a kernel's own parameters
_OF_EVERY_KERNEL = frozenset({PARAMS, "Params"})
_NUMBER = re.compile(r"(?P<start>@group\(0\)\s*@binding\()\d+\)")
_BOUND = re.compile(_NUMBER.pattern + r"\s*var<[^>]*>\s*(?P<name>\w+)")
_STORAGE = re.compile(_NUMBER.pattern + r"\s*var<storage\b")

Plugs = Mapping[str, str]  # slot → what the star of its pattern stands for


@dataclass(frozen=True, eq=False)
class KernelSource:
    """A kernel joined with its fragments: the WGSL that a pipeline is made of."""

    label: str
    kernel: ShaderFile
    files: tuple[ShaderFile, ...]  # what is needed before what needs it
    source: str
    bindings: tuple[str, ...]  # WGSL variable names in binding order
    plugs: Plugs

    @property
    def storage_buffers(self) -> int:
        """Return how many storage buffers the kernel binds."""
        return len(_STORAGE.findall(self.source))

    def figures(self, constants: Mapping[str, float]) -> dict[str, int]:
        return figures_in(self.files, constants)

    def workgroup(self, overrides: tuple[tuple[str, float], ...]) -> int:
        """Return the number of invocations in a workgroup."""
        return _workgroup(self, overrides)[0]

    def workgroup_bytes(self, overrides: tuple[tuple[str, float], ...]) -> int:
        """Return the bytes this kernel keeps in workgroup memory."""
        return _workgroup(self, overrides)[1]


@cache
def _workgroup(kernel: KernelSource, overrides: tuple[tuple[str, float], ...]) -> tuple[int, int]:
    figures = kernel.figures(dict(overrides))
    return workgroup_size(kernel.kernel, figures), workgroup_bytes(kernel.files, figures)


def kernel_source(name: str, plugs: Plugs) -> KernelSource:
    """Join and check a kernel once; GraphError names the file and the fragment that do not fit."""
    return _of_this_project(name, tuple(sorted(plugs.items())))


@cache
def _of_this_project(name: str, plugs: tuple[tuple[str, str], ...]) -> KernelSource:
    return join(all_shaders(), name, dict(plugs))


def join(library: Library, name: str, plugs: Plugs) -> KernelSource:
    """Join a kernel with everything it needs and with the plugs of its slots."""
    kernel = library.file(name)
    if not kernel.is_kernel:
        raise GraphError(f"shader {name} is a fragment; only a kernel can be launched")
    library = with_second_copies(library, kernel, plugs)
    files = tuple(_with_needs(library, kernel, plugs, {}).values())
    for slot in plugs:
        if not any(slot in file.slots for file in files):
            raise GraphError(
                f"shader {name}: '{plugs[slot]}' is to plug into '{slot}', but neither it nor "
                "what it needs has such a slot"
            )
    for file in files:
        check_needs(library, file, plugs, files)
    for file in files:
        check_given(file, files)
    # A directive stands before everything else.
    in_order = sorted(files, key=lambda file: not any(map(is_directive, file.declares)))
    source = number_bindings("\n".join(file.source for file in in_order))
    names = tuple(found["name"] for found in _BOUND.finditer(source))
    return KernelSource("+".join([name, *plugs.values()]), kernel, files, source, names, plugs)


def _with_needs(
    library: Library, file: ShaderFile, plugs: Plugs, found: dict[str, ShaderFile]
) -> dict[str, ShaderFile]:
    """Yield each file once, after everything it needs."""
    for need in _direct_needs(library, file, plugs):
        if need.name not in found:
            _with_needs(library, need, plugs, found)
    found[file.name] = file
    return found


def _direct_needs(library: Library, file: ShaderFile, plugs: Plugs) -> Iterator[ShaderFile]:
    for name in file.needs:
        if name not in library.files:
            raise GraphError(f"shader {file.name} needs {name}, which does not exist")
        yield library.files[name]
    for name in file.seconds:
        yield library.files[copy_of(name)]
    for slot, start in file.slots.items():
        known = library.alternatives(start)
        if plugs.get(slot) not in known:
            given = f"not '{plugs[slot]}'" if slot in plugs else "and nothing does"
            raise GraphError(
                f"shader {file.name}: one of {known} plugs into its slot '{slot}' "
                f"({start}{STAR}), {given}"
            )
        plugged = start + plugs[slot]
        yield library.files[copy_of(plugged) if slot.endswith(SECOND) else plugged]


def check_needs(
    library: Library, file: ShaderFile, plugs: Plugs, files: tuple[ShaderFile, ...]
) -> None:
    """Check that the `needs` line names every file whose declarations are used, and no other."""
    direct = list(_direct_needs(library, file, plugs))
    for need in direct:
        if not file.uses & need.declares:
            raise GraphError(
                f"shader {file.name} needs {need.name} by its line, but uses nothing of it"
            )
    known = _OF_EVERY_KERNEL.union(file.given, *(need.declares for need in direct))
    for name in sorted(file.uses - known):
        if owners := library.owners.get(name) or library.owners.get(name.removesuffix(SECOND)):
            here = [other.name for other in files if name in other.declares]
            raise GraphError(
                f"shader {file.name} uses {name} of {' or '.join(here or owners)}, which its line "
                "of needs does not name"
            )
    for name in file.given:
        if name not in file.uses:
            raise GraphError(f"shader {file.name} needs @{name} by its line, but does not use it")


def check_given(file: ShaderFile, files: tuple[ShaderFile, ...]) -> None:
    """Check that some file of the kernel has what this one leaves to the others."""
    for name in file.given:
        if not any(name in other.declares for other in files):
            raise GraphError(f"shader {file.name} needs @{name}, which no file of the kernel has")


def is_directive(declared: str) -> bool:
    """Return whether what a file declares is a directive, as files of halves and subgroups do."""
    return declared.startswith(DIRECTIVE)


def number_bindings(source: str) -> str:
    """Give the bindings of joined files consecutive numbers; each file counts its own from 0."""
    numbers = itertools.count()
    return _NUMBER.sub(lambda found: f"{found['start']}{next(numbers)})", source)
