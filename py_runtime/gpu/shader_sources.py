"""The WGSL files by name, and what each says of itself.

A name is a file's path under shaders/ without its suffix. A file is a kernel, with an entry point,
or a fragment that kernels are joined from. Each says in one line what it cannot do without:

    // needs: shared/walk, element = reduce/fragments/element_*, @row_scales

A plain name is a fragment that always comes along. `slot = pattern` is a slot: an op chooses the
fragment, and says what the star stands for. `@name` is declared by whichever file of the kernel has
it; `params` is a matter of course. `second = name` is a fragment once more, with other plugs, under
names of its own (see second_copies.py). A file that needs none of it says `// needs: nothing`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from py_runtime.base.errors import GraphError

SUBGROUPS = "enable subgroups"  # stands for all that it gives
DIRECTIVE = "enable "
STAR = "*"

_INSIDE_WHEEL = Path(__file__).parent.parent / "shaders"
_IN_CHECKOUT = Path(__file__).parent.parent.parent / "shaders"
_SUFFIX = ".wgsl"

NEEDS = re.compile(r"^// needs: *(.*)$", re.MULTILINE)
_SLOT = re.compile(r"(\w+) = ([\w/]+)\*")
_SECOND = re.compile(r"second = ([\w/]+)")
_COMMENT = re.compile(r"//[^\n]*")
_BINDING = r"(?:@group\(\d+\)\s*@binding\(\d+\)\s*)?"
_KEYWORD = r"(?:const|override|var(?:<[^>]*>)?|alias|struct|fn)"
_DECLARED = re.compile(rf"^{_BINDING}{_KEYWORD}\s+(\w+)|^(enable \w+);", re.MULTILINE)
_CONSTANT = re.compile(r"^(?:const|override)\s+(\w+)[^=;]*=\s*([^;]+);", re.MULTILINE)
_SCOPE = re.compile(r"^(?:fn|struct)\b.*?^\}", re.MULTILINE | re.DOTALL)
_LOCAL = re.compile(r"\b(?:let|var)\s+(\w+)|(?<!case )\b(\w+)\s*:")
_WORD = re.compile(r"(?<![\w.@])[A-Za-z_]\w*")
_OF_SUBGROUPS = re.compile(r"\b(?:subgroup|quad)[A-Z]\w*\(")


@dataclass(frozen=True, eq=False)
class ShaderFile:
    """A WGSL file and what its text declares."""

    name: str
    source: str
    needs: tuple[str, ...]  # fragments that always come along
    slots: dict[str, str]  # name → how a fragment's name begins
    seconds: tuple[str, ...]  # fragments that come along once more
    given: tuple[str, ...]  # names that another file of the kernel declares
    declares: frozenset[str]
    uses: frozenset[str]  # names of module scope that it does not declare
    constants: tuple[tuple[str, str], ...]  # name, expression

    @property
    def is_kernel(self) -> bool:
        return "\n@compute" in self.source


def parse(name: str, source: str) -> ShaderFile:
    """Parse a file; GraphError if it has no `needs` line."""
    lines = NEEDS.findall(source)
    if len(lines) != 1:
        raise GraphError(f"shader {name} has {len(lines)} lines that begin '// needs:'; it has one")
    entries = [] if lines[0] == "nothing" else [entry.strip() for entry in lines[0].split(",")]
    slots = {found[1]: found[2] for entry in entries if (found := _SLOT.fullmatch(entry))}
    seconds = tuple(found[1] for entry in entries if (found := _SECOND.fullmatch(entry)))
    plain = [
        entry for entry in entries if not _SLOT.fullmatch(entry) and not _SECOND.fullmatch(entry)
    ]
    code = _COMMENT.sub("", source)
    declares = frozenset(_words(_DECLARED.findall(code)))
    return ShaderFile(
        name,
        source,
        tuple(entry for entry in plain if entry[0] != "@"),
        slots,
        seconds,
        tuple(entry[1:] for entry in plain if entry[0] == "@"),
        declares,
        _used(code) - declares,
        tuple(_CONSTANT.findall(code)),
    )


def _used(code: str) -> frozenset[str]:
    """Return the global names that the code uses: parameters, variables and members hide them."""
    used = set(_WORD.findall(_SCOPE.sub("", code)))
    for scope in _SCOPE.findall(code):
        used |= set(_WORD.findall(scope)) - set(_words(_LOCAL.findall(scope)))
    return frozenset(used | {SUBGROUPS} if _OF_SUBGROUPS.search(code) else used)


def _words(found: Iterable[tuple[str, ...]]) -> Iterable[str]:
    """Yield, for each match, the text of whichever group matched."""
    return ("".join(groups) for groups in found)


@dataclass(frozen=True, eq=False)
class Library:
    """Shader files by their path below shaders/, without the suffix."""

    files: dict[str, ShaderFile]

    def file(self, name: str) -> ShaderFile:
        try:
            return self.files[name]
        except KeyError:
            raise GraphError(f"there is no shader {name}") from None

    def alternatives(self, start: str) -> list[str]:
        """Return what the star of a slot's pattern can stand for, given the text before it."""
        if start not in self._alternatives:
            names = [name.removeprefix(start) for name in self.files if name.startswith(start)]
            self._alternatives[start] = [name for name in names if "/" not in name]
        return self._alternatives[start]

    @cached_property
    def _alternatives(self) -> dict[str, list[str]]:
        """Return a cache of the alternatives asked for so far: every join asks for every slot."""
        return {}

    @cached_property
    def owners(self) -> dict[str, list[str]]:
        """Return the files that declare each name."""
        owners: dict[str, list[str]] = {}
        for file in self.files.values():
            for name in file.declares:
                owners.setdefault(name, []).append(file.name)
        return owners


@cache
def all_shaders() -> Library:
    """Read all shaders at once.

    In the page, Python has no files left by the time a kernel is joined (see app/snapshot.py).
    """
    folder = _INSIDE_WHEEL if _INSIDE_WHEEL.is_dir() else _IN_CHECKOUT
    files = {}
    for path in sorted(folder.rglob(f"*{_SUFFIX}")):
        name = path.relative_to(folder).with_suffix("").as_posix()
        files[name] = parse(name, path.read_text(encoding="utf-8"))
    return Library(files)
