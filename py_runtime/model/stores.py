"""The kind of model that a place holds, and the store that Model.load opens."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urljoin, urlsplit

from py_runtime.base.model_errors import ModelFileError
from py_runtime.base.platform import IN_PAGE
from py_runtime.base.progress import Meter
from py_runtime.folder.file_names import CONFIG, GGUF, INDEX, MODEL_PTE, PTE, SAFETENSORS
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import MANIFEST, Manifest
from py_runtime.generation.session import TokenRows
from py_runtime.gpu import Device
from py_runtime.hub.address import is_address, leads_to_hub
from py_runtime.model.requirements import check_requirements
from py_runtime.weights.byte_source import ABSENT, ByteSource, is_there
from py_runtime.weights.constants import ConstantSource
from py_runtime.weights.open_source import open_source

if TYPE_CHECKING:
    from py_runtime.model.gguf_store import GgufStore
    from py_runtime.model.pte_store import PteStore

if IN_PAGE:
    from py_runtime.model.streamed_weights import StreamedFolder as FolderStore
else:
    from py_runtime.model.folder_token_rows import LocalFolder as FolderStore


class Store(Protocol):
    """The files of a model."""

    @property
    def end_tokens(self) -> frozenset[int]:
        """Return end tokens besides those in the config files."""

    async def manifest(self) -> Manifest: ...

    async def open(self, meter: Meter | None = None) -> ModelFolder: ...

    async def read(self, model: ModelFolder, file: str) -> bytes | dict[str, Any]:
        """Return a file's bytes, or its parsed JSON if it exists nowhere as a file."""

    def constants(self, model: ModelFolder) -> ConstantSource | Mapping[str, Any]: ...

    def token_rows(self, model: ModelFolder) -> TokenRows | None:
        """Return the rows of tokens that do not lie on the GPU, if the model has them."""


async def open_store(where: str) -> Store:
    """Open a model by its path, address or Hub name.

    That is a folder that `inpage export` wrote, a .gguf or .pte file, or a folder with model.pte,
    or with the checkpoint of a text encoder or of a model that sees.
    Or a model of the Hub: `hf:owner/name`; natively the address of its page as well.
    """
    if leads_to_hub(where):
        from py_runtime.model.hub_store import hub_store  # few models need it

        return await hub_store(where)
    file = file_name(where)
    if file.lower().endswith(GGUF):
        return gguf_store(where)
    if file.endswith(PTE):
        return pte_store(where)
    where = where.removesuffix(f"/{MANIFEST}")
    store = folder_store(where)
    try:
        await store.manifest()
    except (*ABSENT, ModelFileError):
        inside = f"{where.rstrip('/')}/x"
        if await is_there(source_of(beside(inside, MODEL_PTE))):
            return pte_store(beside(inside, MODEL_PTE))
        for weights in (SAFETENSORS, INDEX):
            if await is_there(source_of(beside(inside, weights))):
                return await checkpoint_store(where)
        raise
    return store


async def open_folder(
    device: Device, where: str | Store, meter: Meter
) -> tuple[Store, ModelFolder]:
    """Open a model as far as it is known before its weights are read, if the device can run it."""
    store = await open_store(where) if isinstance(where, str) else where
    check_requirements(await store.manifest(), device)
    return store, await store.open(meter)


def folder_store(where: str) -> Store:
    """Return the store of a model folder."""
    if not is_address(where):
        return FolderStore(where)
    from py_runtime.model.fetched_folder import FetchedFolder  # natively; few need it

    return FetchedFolder(where)


def source_of(where: str) -> ByteSource:
    """Return the source of a file at an address or path."""
    if not is_address(where):
        return open_source(where)
    from py_runtime.download.host import HostRequests  # natively; few need it
    from py_runtime.hub.hosted_source import HostedSource

    return HostedSource(where, HostRequests())


async def checkpoint_store(where: str) -> Store:
    """Return the store of a checkpoint in a folder at an address or path."""
    from py_runtime.model.checkpoint_files import CheckpointFiles  # few models need them
    from py_runtime.model.checkpoint_store import CheckpointStore
    from py_runtime.model.seeing_checkpoint import SeeingCheckpointStore
    from py_runtime.vision.families import sees

    folder = where.replace("\\", "/").rstrip("/")
    name = file_name(folder) or folder

    def find(file: str) -> ByteSource:
        return source_of(f"{folder}/{file}")

    config = await CheckpointFiles(find).read_json(CONFIG)
    is_seeing = isinstance(config, dict) and sees(config)
    return SeeingCheckpointStore(name, find) if is_seeing else CheckpointStore(name, find)


def pte_store(where: str) -> "PteStore":
    """Return the store of a .pte at an address or path; its tokenizer lies beside it."""
    from py_runtime.model.pte_store import PteFiles, PteStore  # few models need its reader

    def find(name: str) -> ByteSource:
        return source_of(beside(where, name))

    file = file_name(where)
    folder = where.replace("\\", "/").rpartition("/")[0]
    name = unquote(folder.rpartition("/")[2]) if file == MODEL_PTE else file.removesuffix(PTE)
    return PteStore(PteFiles(name or file, source_of(where), find))


def gguf_store(where: str) -> "GgufStore":
    """Return the store of a .gguf at an address or path; its other parts lie beside it."""
    from py_runtime.gguf.part_names import model_name, parts_of  # few models need its reader
    from py_runtime.model.gguf_store import GgufStore

    file = file_name(where)
    sources = [source_of(where if part == file else beside(where, part)) for part in parts_of(file)]
    projector = _projector_beside(where)
    if projector is not None:
        sources.append(source_of(projector))
    return GgufStore(model_name(file), sources, must_see=False)


def _projector_beside(where: str) -> str | None:
    """Return the path of the mmproj file that belongs to a model on this disk, if there is one."""
    from py_runtime.gguf.part_names import is_first_part  # few models need them
    from py_runtime.gguf.projector_names import is_projector, projector_for

    if IN_PAGE or is_address(where) or is_projector(file_name(where)):
        return None
    try:
        names = [path.name for path in Path(where).parent.iterdir()]
    except OSError:
        return None
    files = [name for name in names if name.lower().endswith(GGUF)]
    models = [name for name in files if not is_projector(name) and is_first_part(name)]
    found = projector_for(file_name(where), files, is_alone=len(models) == 1)
    return beside(where, found) if found else None


def file_name(where: str) -> str:
    """Return the last part of an address or path."""
    path = urlsplit(where).path if is_address(where) else where
    return unquote(path.replace("\\", "/").rpartition("/")[2])


def beside(where: str, name: str) -> str:
    """Return the address or path of another file in the same folder."""
    is_url = IN_PAGE or is_address(where)
    return urljoin(where, name) if is_url else str(Path(where).with_name(name))
