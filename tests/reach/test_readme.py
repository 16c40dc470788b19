"""The README's section "Use it from…": the lines that need neither package.

The others are run by test_npm_package.py and test_bare_pyodide.py.
"""

import json
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import first_line, running
from tests.reach.readme import LINES, go_on
from tests.runners import NativeRunner, PageRunner
from tests.toy_model import NAME
from tools.files import ROOT


def test_there_are_five() -> None:
    names = ["the page", "JavaScript", "Python in the browser", "Python natively", "HTTP"]
    assert list(LINES) == names
    assert not [line for line in LINES.values() if "\n" in line]


@pytest.mark.browser
def test_the_page(toy_page: PageRunner) -> None:
    toy_page.page.evaluate(f"inpage.load('{NAME}').then(() => null)")
    assert isinstance(toy_page.page.evaluate(f"(async () => {LINES['the page']})()"), str)


def test_python_natively(native: NativeRunner, toy_model: Path) -> None:
    line = LINES["Python natively"].replace(f"models/{NAME}", str(toy_model))
    body = "".join(f"    {row}\n" for row in ("import inpage", line, go_on(), "model.unload()"))
    script = f"import asyncio\n\nasync def main():\n{body}\nasyncio.run(main())\n"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_http(toy_model: Path) -> None:
    curl, address, _, header, _, data = shlex.split(LINES["HTTP"])
    assert curl == "curl"
    serve = [sys.executable, "-m", "inpage", "api", str(toy_model), "--port", "0"]
    with running(serve, cwd=ROOT) as process:
        server = first_line(process).removeprefix("inpage is at ").rstrip("/")
        address = address.replace("http://127.0.0.1:8080/v1", server)
        headers = dict([header.split(": ")])
        request = urllib.request.Request(address, data.encode(), headers)
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
    assert isinstance(answer["choices"][0]["message"]["content"], str)
