"""The choice among a repository's files: which are models, and which one is a good choice."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from py_runtime.base.errors import RequestError
from py_runtime.gguf.part_names import is_first_part, model_name, parts_of
from py_runtime.gguf.projector_names import is_projector, label_of, projector_for
from py_runtime.hub.listing import HubFile

# Files beside models: projectors of pictures, draft heads, importance matrices.
BESIDE = ("mmproj", "mtp-", "imatrix")
MAX_PROJECTORS = 50  # mmproj files that are looked at: far more than any model has
# In names of models whose images can be read.
SEEING = ("smolvlm", "idefics3", "gemma-3-", "qwen2.5-vl", "qwen3-vl", "lfm2-vl", "lfm2.5-vl")
PREFERRED = ("Q4_K_M", "Q4_0", "Q8_0")


@dataclass(frozen=True)
class Variant:
    """A model in one quantisation: a file, or all parts of one."""

    name: str
    quantisation: str  # as its name says
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def variants_of(files: Iterable[HubFile]) -> list[Variant]:
    """Return the variants among these files, the smallest first.

    A variant whose parts are not all there is left out. The work grows with the number of files,
    whatever numbers of parts their names claim.
    """
    by_path = {file.path: file for file in files}
    own = (file for file in by_path.values() if is_projector(file.path.rpartition("/")[2]))
    projectors = list(islice(own, MAX_PROJECTORS))
    found: list[Variant] = []
    for path in sorted(by_path):
        folder, slash, name = path.rpartition("/")
        if not is_first_part(name) or _is_beside(name):
            continue
        parts = _all_present(by_path, (f"{folder}{slash}{part}" for part in parts_of(name)))
        if parts:
            model = model_name(name)
            seeing = _projector_of(projectors, folder, name)
            found.append(Variant(model, label_of(model), (*parts, *seeing)))
    return sorted(found, key=lambda variant: (variant.size, variant.name))


def default_of(variants: Sequence[Variant]) -> Variant:
    """Return a variant that is small and nearly as good as the whole; else the smallest."""
    by_label: dict[str, list[Variant]] = defaultdict(list)
    for variant in variants:
        by_label[variant.quantisation].append(variant)
    return next((by_label[label][0] for label in PREFERRED if label in by_label), variants[0])


def choose(repository: str, variants: Sequence[Variant], path: str | None) -> Variant:
    """Return the variant with this file, or the default."""
    if not variants:
        raise RequestError(
            f"{repository} has no GGUF files: look for a repository whose name ends in -GGUF",
            "name_or_url",
        )
    if path is None:
        return default_of(variants)
    for variant in variants:
        if any(file.path == path for file in variant.files):
            return variant
    names = ", ".join(variant.files[0].path for variant in variants[:20])
    raise RequestError(f"{repository} has no {path}; it has: {names}", "name_or_url")


def _all_present(by_path: Mapping[str, HubFile], paths: Iterable[str]) -> tuple[HubFile, ...]:
    """Return the files at these paths, or nothing as soon as one of them is missing."""
    found: list[HubFile] = []
    for path in paths:
        if path not in by_path:
            return ()
        found.append(by_path[path])
    return tuple(found)


def _projector_of(projectors: Sequence[HubFile], folder: str, name: str) -> tuple[HubFile, ...]:
    """Return the mmproj file of a model whose images can be read; of others it is not fetched."""
    if not any(family in name.lower() for family in SEEING):
        return ()
    start = f"{folder}/" if folder else ""
    beside = {
        file.path.removeprefix(start): file for file in projectors if file.path.startswith(start)
    }
    found = projector_for(name, beside, is_alone=True)
    return (beside[found],) if found else ()


def _is_beside(name: str) -> bool:
    return name.lower().startswith(BESIDE)
