"""The models at hand: in a folder of this machine; in a browser, what it keeps and a site has."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

from py_runtime.app.listing import parse_listing
from py_runtime.base.errors import NetworkError
from py_runtime.base.model_errors import ModelError, ModelFileError
from py_runtime.encoder.config import is_encoder
from py_runtime.folder.file_names import CONFIG, GGUF, MODEL_PTE, SAFETENSORS
from py_runtime.folder.manifest import MANIFEST, MAX_MANIFEST_BYTES, parse_manifest
from py_runtime.folder.strict_json import parse_strict_json
from py_runtime.gguf.part_names import is_first_part, model_name, parts_of

FOLDER = "models"  # of a checkout


@dataclass(frozen=True)
class ModelEntry:
    """A model that `inpage.load(entry.where)` takes."""

    name: str
    where: str  # a path, or an address
    size: int | None  # bytes; None: not known before it is loaded
    stored: bool  # whether all of it is here; natively it is


# Natively --------------------------------------------------------------------------------------


def in_folder(where: str | None) -> list[ModelEntry]:
    """Return the models of a folder that can be loaded, in the order of their file names.

    Raise ModelFileError if a folder was named that does not exist.
    """
    folder = Path(FOLDER if where is None else where)
    if not folder.is_dir():
        if where is None:
            return []
        raise ModelFileError(f"there is no folder of models at {where}")
    found = [entry_of(path) for path in sorted(folder.iterdir()) if path.name[0] != "."]
    return [entry for entry in found if entry is not None]


def entry_of(path: Path) -> ModelEntry | None:
    """None for what is not a model, or not a whole one."""
    if path.name.lower().endswith(GGUF):
        if not is_first_part(path.name):
            return None
        size = 0
        for name in parts_of(path.name):
            part = path.with_name(name)
            if not part.is_file():
                return None
            size += part.stat().st_size
        return ModelEntry(model_name(path.name), str(path), size, stored=True)
    if (path / MANIFEST).is_file():
        try:
            with (path / MANIFEST).open("rb") as file:
                manifest = parse_manifest(file.read(MAX_MANIFEST_BYTES + 1))
        except ModelError:
            return None
        return ModelEntry(manifest.name, str(path), manifest.size, stored=True)
    if (path / SAFETENSORS).is_file() and _is_encoder(path / CONFIG):
        size = (path / SAFETENSORS).stat().st_size
        return ModelEntry(path.name, str(path), size, stored=True)
    program = path / MODEL_PTE
    if program.is_file():
        return ModelEntry(path.name, str(path), program.stat().st_size, stored=True)
    return None


def _is_encoder(config: Path) -> bool:
    """Return whether this config.json is of a text encoder that can be loaded."""
    try:
        with config.open("rb") as file:
            found = parse_strict_json(file.read(MAX_MANIFEST_BYTES))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and is_encoder(found)


# In a browser ----------------------------------------------------------------------------------


async def in_browser(where: str | None) -> list[ModelEntry]:
    """Return the models that the site lists, then the others that the browser keeps.

    Raise NetworkError if a site was named that has no list.
    """
    from py_runtime.folder.kept_models import LOCAL, list_stored_models  # where a bridge is

    kept = {
        model["url"]: ModelEntry(model["name"], model["url"], model["bytes"], stored=True)
        for model in await list_stored_models()
        if model["complete"] and not model["url"].startswith(LOCAL)  # which only the page can open
    }
    try:
        offered = await of_site(where)
    except NetworkError:
        if where is not None:
            raise
        offered = []  # most pages that are not ours
    addresses = {entry.where for entry in offered}
    others = [entry for url, entry in kept.items() if url not in addresses]
    return [kept.get(entry.where, entry) for entry in offered] + others


async def of_site(where: str | None) -> list[ModelEntry]:
    """Return what the models.json of a site lists; by default, of the site that this runs on."""
    from js import location

    from py_runtime.folder.on_site import fetch_bytes

    site = urljoin(location.href, where or "")
    listed = parse_listing(await fetch_bytes(urljoin(site, "models.json")))
    return [
        ModelEntry(entry["name"], urljoin(site, entry["path"]), entry.get("size"), stored=False)
        for entry in listed
        if "error" not in entry
    ]
