"""Circles among the scripts of the page are found and named, in whatever way they import."""

from pathlib import Path

import pytest

from tools.errors import UserError
from tools.files import ROOT
from tools.script_circles import check, imports_of

WEB = ROOT / "web"


def write_scripts(folder: Path, **scripts: str) -> Path:
    for name, text in scripts.items():
        (folder / f"{name}.js").write_text(text)
    return folder


@pytest.mark.parametrize(
    "back",
    [
        'import { top } from "./top.js";',
        'import {\n  top,\n} from "./top.js";',
        'import "./top.js";',
        'export * from "./top.js";',
        'const top = lazy(() => import("./top.js"));',
        "const top = (name) => import(`./${name}.js`);",
    ],
)
def test_a_circle_is_named(tmp_path: Path, back: str) -> None:
    folder = write_scripts(
        tmp_path,
        top='import { middle } from "./middle.js";',
        middle='export const low = () => import("./low.js");',
        low=back,
    )
    with pytest.raises(UserError, match=r"circle: .*(middle\.js → low\.js|low\.js → low\.js)"):
        check(folder)


def test_types_make_no_circle(tmp_path: Path) -> None:
    types = '/** @import { A } from "./top.js" */\n/** @type {import("./top.js").A} */\n'
    check(write_scripts(tmp_path, top='import { a } from "./low.js";', low=types))


def test_what_is_imported_is_there(tmp_path: Path) -> None:
    folder = write_scripts(tmp_path, top='import { low } from "./lower.js";', low="")
    with pytest.raises(UserError, match=r"top\.js imports \./lower\.js, which is not there"):
        check(folder)


def test_the_page_has_none() -> None:
    found = {path.relative_to(WEB).as_posix() for path in imports_of(WEB / "app.js")}
    assert {"api.js", "ui/settings/dialog.js", "ui/sidebar.js"} <= found
    check(WEB)
