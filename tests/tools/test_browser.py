"""The browsers that the tests get, on a PATH of our own making."""

import os
from functools import partial
from pathlib import Path

import pytest

from py_runtime.app import software_gpu
from tools import browser
from tools.errors import exit_status

NAMES = ("chromium", "chromium-browser", "google-chrome")

make_ready = partial(browser.make_ready, "chromium", "firefox")


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the only folder on the PATH; there is no browser of Playwright's either."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.delenv("FIREFOX", raising=False)
    monkeypatch.setattr(software_gpu, "playwrights_own", lambda: None)
    return folder


def put_program(folder: Path, name: str, script: str = "") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def pretend(monkeypatch: pytest.MonkeyPatch, distribution: str, user: int) -> None:
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": distribution})
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_the_search_order(
    bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = put_program(tmp_path, "playwrights-chrome")
    monkeypatch.setattr(software_gpu, "playwrights_own", lambda: own)
    assert browser.find() == own
    for name in reversed(NAMES):
        put_program(bin_folder, name)
        assert browser.find() == bin_folder / name
    chosen = put_program(tmp_path, "my-chrome")
    monkeypatch.setenv("CHROMIUM", str(chosen))
    assert browser.find() == chosen


def test_the_search_order_of_firefox(
    bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("firefox", "firefox-esr"):
        put_program(bin_folder, name)
        assert browser.find_firefox() == bin_folder / name
    chosen = put_program(tmp_path, "my-firefox")
    monkeypatch.setenv("FIREFOX", str(chosen))
    assert browser.find_firefox() == chosen


@pytest.mark.parametrize("variable", ["CHROMIUM", "FIREFOX"])
def test_a_chosen_browser_that_is_not_there_is_never_replaced(
    bin_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
) -> None:
    put_program(bin_folder, "chromium")
    put_program(bin_folder, "firefox-esr")
    put_program(bin_folder, "apt-get", "exit 100")
    pretend(monkeypatch, "debian", user=0)
    monkeypatch.setenv(variable, "/no/such/browser")
    assert exit_status(make_ready) == 1
    message = f"inpage: {variable}=/no/such/browser is not a program that can be run\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("there", [(), ("chromium",), ("firefox-esr",)])
def test_debian_as_root_installs_the_packages_that_are_missing(
    bin_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: tuple[str, ...],
) -> None:
    pretend(monkeypatch, "debian", user=0)
    for name in there:
        put_program(bin_folder, name)
    install = f'made={bin_folder}/$5; echo "#!/bin/sh" > $made; /bin/chmod +x $made'
    put_program(bin_folder, "apt-get", f'case "$2" in install) {install};; esac')
    assert exit_status(make_ready) == 0
    said = capsys.readouterr().out
    for name in ("chromium", "firefox-esr"):
        assert (f"installing Debian's {name} for the tests\n" in said) == (name not in there)
        assert f"browser for the tests: {bin_folder}/{name}\n" in said


def test_a_failing_installation_is_one_line(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, "debian", user=0)
    put_program(bin_folder, "apt-get", "echo 'E: no network' >&2; exit 100")
    assert exit_status(make_ready) == 1
    assert capsys.readouterr().err == "inpage: apt-get update failed: E: no network\n"


@pytest.mark.parametrize(("distribution", "user"), [("debian", 1000), ("ubuntu", 0), ("arch", 0)])
def test_elsewhere_one_line_says_what_to_install(
    bin_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    distribution: str,
    user: int,
) -> None:
    pretend(monkeypatch, distribution, user)
    put_program(bin_folder, "apt-get", "exit 1")
    assert exit_status(make_ready) == 1
    message = capsys.readouterr().err
    assert message.startswith("inpage: no browser for the tests: install Chromium or Google Chrome")
    assert message.count("\n") == 1
    put_program(bin_folder, "chromium")
    assert exit_status(make_ready) == 1
    message = capsys.readouterr().err
    assert message.startswith("inpage: no Firefox for the tests: install it, or set FIREFOX=")
    assert message.count("\n") == 1


def test_webgpu_is_switched_on() -> None:
    flags = browser.launch_flags()
    assert "--enable-unsafe-webgpu" in flags
    assert "--use-webgpu-adapter=swiftshader" in flags


def test_swiftshaders_driver_file_lies_beside_the_browser(
    bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(software_gpu, "BROWSER_FOLDERS", ())
    real = tmp_path / "chromium-files"
    real.mkdir()
    program = put_program(real, "chromium")
    (bin_folder / "chromium").symlink_to(program)
    assert software_gpu.swiftshader_icd() is None
    (real / "vk_swiftshader_icd.json").write_text("{}")
    assert software_gpu.swiftshader_icd() == real / "vk_swiftshader_icd.json"
    monkeypatch.setattr(software_gpu, "BROWSER_FOLDERS", (str(real),))
    (bin_folder / "chromium").unlink()
    put_program(bin_folder, "chromium")
    assert software_gpu.swiftshader_icd() == real / "vk_swiftshader_icd.json"
