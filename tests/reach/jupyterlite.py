"""A JupyterLite as people build theirs, with our wheel on its own index and one notebook."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.reach.pyodide_wheels import COMM, FOLDER, WHEELS, write_pyodide

COMMAND = FOLDER / "venv" / "bin" / "jupyter-lite"
NOTEBOOK = "notebook.ipynb"
CONTENTS = "all.json"
# As jupyter_server would describe a folder; building a site does without it.
DATES = {"created": "2026-01-01T00:00:00Z", "last_modified": "2026-01-01T00:00:00Z"}


def write_jupyterlite(folder: Path, wheel: Path, notebook: dict[str, Any]) -> Path:
    """Write JupyterLite and return the folder to serve."""
    given, site = folder / "given", folder / "site"
    write_pyodide(given / "static" / "pyodide")
    (given / "pypi").mkdir()
    for own in (wheel, WHEELS / COMM):
        shutil.copyfile(own, given / "pypi" / own.name)
    build = [str(COMMAND), "build", "--apps", "notebooks", "--no-sourcemaps"]
    places = ["--lite-dir", str(given), "--output-dir", str(site)]
    subprocess.run([*build, *places], cwd=folder, check=True, capture_output=True)
    add_notebook(site, notebook)
    return site


def add_notebook(site: Path, notebook: dict[str, Any]) -> None:
    """Do what `jupyter lite build --contents` does where jupyter_server is installed."""
    text = json.dumps(notebook)
    (site / "files").mkdir()
    (site / "files" / NOTEBOOK).write_text(text)
    file = {**DATES, "name": NOTEBOOK, "path": NOTEBOOK, "type": "notebook", "size": len(text)}
    folder = {**DATES, "name": "", "path": "", "type": "directory", "content": [file]}
    (site / "api" / "contents").mkdir(parents=True)
    (site / "api" / "contents" / CONTENTS).write_text(json.dumps(folder))
    settings = site / "jupyter-lite.json"
    config = json.loads(settings.read_bytes())
    config["jupyter-config-data"]["contentsAllJsonFile"] = CONTENTS
    settings.write_text(json.dumps(config))
