"""The static build: the whole site as files that any static host can serve."""

import shutil
import tempfile
from pathlib import Path

from tools import models
from tools.compress import ENCODINGS, VariantStore, may_pay
from tools.errors import UserError
from tools.files import write_whole
from tools.site import IMMUTABLE, IMMUTABLE_FOLDERS, Resource, Site

MARKER = ".inpage-build"  # tells a former build, which may be replaced, from a folder of someone's


class BuildError(UserError):
    """An error of a place where the site cannot be written; it says why."""


def build(site: Site, out: Path, variants: VariantStore) -> None:
    """Make `out` the whole site, or leave it as it was."""
    out = out.resolve()
    check_replaceable(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as temporary:
        fresh = Path(temporary) / "fresh"
        fresh.mkdir()
        write_site(site, fresh, variants)
        former = Path(temporary) / "former"
        if out.exists():
            out.rename(former)
        try:
            fresh.rename(out)
        except OSError:
            if former.exists():
                former.rename(out)
            raise


def check_replaceable(out: Path) -> None:
    """BuildError unless it is absent, empty or an earlier build."""
    if not out.exists():
        return
    if not out.is_dir():
        raise BuildError(f"{out} is a file, not a folder to build into")
    if any(out.iterdir()) and not (out / MARKER).is_file():
        raise BuildError(
            f"{out} holds something other than an earlier build; choose another folder"
        )


def write_site(site: Site, folder: Path, variants: VariantStore) -> None:
    """Write the site and what static hosts want to know: headers, and that nothing is processed."""
    for url in site.urls():
        resource = site.find(url)
        if resource is None:
            raise BuildError(f"{url} vanished or became unreadable while building")
        write_resource(resource, folder / url, variants)
    write_whole(folder / "_headers", headers_file(site).encode())
    write_whole(folder / ".nojekyll", b"")
    write_whole(folder / MARKER, b"")


def write_resource(resource: Resource, path: Path, variants: VariantStore) -> None:
    """Write a resource with its compressed variants beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(resource.content, bytes):
        path.write_bytes(resource.content)
    else:
        shutil.copyfile(resource.content, path)
    if resource.sha256 and may_pay(path.name, resource.size):
        for encoding, variant in variants.make(resource.sha256, resource.read()).items():
            shutil.copyfile(variant, path.with_name(path.name + ENCODINGS[encoding]))


def headers_file(site: Site) -> str:
    """Return the `_headers` file that several static hosts read.

    Hosts that find several rules for a path join them, so the caching of everything is left to the
    host, and only files whose URL carries a hash get a rule. Of two policies both hold.
    """
    lines = ["/*", *(f"  {name}: {value}" for name, value in site.headers.items())]
    lines += [f"/{models.FOLDER}/*", *(f"  {n}: {value}" for n, value in models.HEADERS.items())]
    for folder in IMMUTABLE_FOLDERS:
        lines += [f"/{folder}/*", f"  Cache-Control: {IMMUTABLE}"]
    return "\n".join(lines) + "\n"
