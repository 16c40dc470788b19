"""The contents of the npm package."""

import io
import tarfile

from tools.files import ROOT
from tools.package import ENTRIES, GLOBAL, modules_from, pack

WEB = ROOT / "web"


def test_modules_come_with_all_that_they_import_and_nothing_of_the_pages_looks() -> None:
    found = modules_from(WEB, ENTRIES)
    assert {"engine.js", "api.js", "client.js", "worker.js", "interpreter.js"} < set(found)
    assert {f"bridge/{path.name}" for path in (WEB / "bridge").glob("*.js")} < set(found)
    assert not [name for name in found if name.startswith("ui/") or name in ("app.js", "sw.js")]


def test_types_lack_the_pages_global_and_nothing_else() -> None:
    text = (WEB / "inpage.d.ts").read_text(encoding="utf-8")
    cut = GLOBAL.sub("", text)
    assert "var inpage" not in cut
    assert text.count("export interface") == cut.count("export interface")


def test_equal_files_give_equal_bytes() -> None:
    files = {"b/c.txt": b"two", "a.txt": b"one"}
    data = pack(files)
    assert data == pack(dict(reversed(files.items())))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["package/a.txt", "package/b/c.txt"]
        member = archive.extractfile("package/a.txt")
        assert member
        assert member.read() == b"one"
