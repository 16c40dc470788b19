"""`inpage serve` as people start it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import first_line, running
from tools.files import ROOT


def run_serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inpage", "serve", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.built
def test_a_taken_port_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = run_serve("--port", str(port))
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == (
        f"inpage: cannot listen on 127.0.0.1 port {port}: "
        "it is taken; choose another with --port (make serve PORT=...)\n"
    )


@pytest.mark.built
def test_a_browser_opens_where_that_is_asked_for(tmp_path: Path) -> None:
    """The stand-in for one says what it is given where the server says what it does."""
    opener = tmp_path / "browser"
    opener.write_text('#!/bin/sh\necho "opened $1"\n')
    opener.chmod(0o700)
    environment = {**os.environ, "BROWSER": f"{opener} %s"}
    command = [sys.executable, "-m", "inpage", "serve", "--port", "0", "--open"]
    with running(command, cwd=ROOT, env=environment) as process:
        address = first_line(process).removeprefix("inpage is at ")
        while (line := first_line(process)) and not line.startswith("opened"):
            pass
        assert line == f"opened {address}"


def test_a_missing_folder_of_models_is_one_line(tmp_path: Path) -> None:
    outcome = run_serve("--port", "0", "--models", str(tmp_path / "none"))
    assert outcome.returncode == 1
    assert outcome.stderr == f"inpage: there is no folder of models at {tmp_path / 'none'}\n"


def test_the_server_imports_nothing_heavy() -> None:
    script = (
        "import inpage.command, serve, sys; "
        "print({'torch', 'numpy', 'hatchling', 'httpx'} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", script]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert outcome.stdout == "set()\n"


@pytest.mark.built
def test_this_checkouts_page_is_served(site_url: str) -> None:
    address = site_url.removeprefix("http://").rstrip("/")
    host, port = address.split(":")
    with socket.create_connection((host, int(port))) as connection:
        request = f"GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        with connection.makefile("rb") as answer:
            body = answer.read()
    assert body.startswith(b"HTTP/1.1 200 OK")
    assert (ROOT / "web" / "index.html").read_bytes() in body
