"""A driver of Firefox by its own protocol, Marionette: JSON behind its length, over TCP.

Playwright drives a Firefox of its own only; this is the one that people have.
"""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from py_runtime.app.software_gpu import swiftshader_icd
from tools import browser

PATIENCE = 120  # seconds; the machine may have other things to do
FLAGS = ("--headless", "--marionette", "--remote-allow-system-access", "--no-remote")
PREFERENCES = {
    "marionette.port": 0,  # a free one, which Firefox writes into the profile
    "dom.webgpu.enabled": True,
    "gfx.webgpu.ignore-blocklist": True,  # for software adapters
    # So that it finds the software driver, which lies among another browser's files.
    "security.sandbox.content.level": 0,
    "security.sandbox.gpu.level": 0,
}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key under which WebDriver names elements
# A sandbox sees the page's own globals, and is not held up by its policy.
RUN = """const [given] = arguments;
return (async () => { BODY })().then(
    value => ({value}),
    error => ({error: error.traceback ?? error.stack ?? String(error), message: error.message}));"""


class ScriptError(AssertionError):
    """A script in the page threw this."""


class Firefox:
    """A running browser with one tab, or for a while another."""

    def __init__(self, profile: Path) -> None:
        user_js = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(user_js))
        self._opened = ExitStack()
        self._log = self._opened.enter_context((profile / "log.txt").open("w+"))
        self._process = subprocess.Popen(
            [browser.find_firefox(), *FLAGS, "--profile", profile, "about:blank"],
            env=environment(profile),
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        try:
            connection = self._connect(profile / "MarionetteActivePort")
            self._socket = self._opened.enter_context(connection)
            self._stream = self._opened.enter_context(connection.makefile("rb"))
            self._receive()  # it greets first
            self._number = 0
            self.command("WebDriver:NewSession")
            milliseconds = PATIENCE * 1000
            self.command("WebDriver:SetTimeouts", script=milliseconds, pageLoad=milliseconds)
        except BaseException:
            self.close()
            raise

    def _connect(self, port_file: Path) -> socket.socket:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError, ValueError):
                return socket.create_connection(("127.0.0.1", int(port_file.read_text())))
            time.sleep(0.05)
        self._log.seek(0)
        raise AssertionError(f"Firefox did not start; it said:\n{self._log.read()[-2000:]}")

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._opened.close()

    def command(self, name: str, **parameters: Any) -> Any:
        self._number += 1
        message = json.dumps([0, self._number, name, parameters]).encode()
        self._socket.sendall(b"%d:%b" % (len(message), message))
        _, number, error, result = self._receive()
        assert number == self._number
        if error:
            raise AssertionError(f"{name}: {error['error']}: {error['message']}")
        return result

    def _receive(self) -> Any:
        length = b""
        while (byte := self._stream.read(1)) != b":":
            assert byte, "Firefox closed the connection"
            length += byte
        return json.loads(self._stream.read(int(length)))

    # What tests do ------------------------------------------------------------------------------

    def go(self, address: str) -> None:
        self.command("WebDriver:Navigate", url=address)

    def reload(self) -> None:
        self.command("WebDriver:Refresh")

    @contextmanager
    def another_tab(self, address: str) -> Iterator[None]:
        """Meanwhile everything is done in that one; the first stays open behind it."""
        first = self.command("WebDriver:GetWindowHandle")["value"]
        handle = self.command("WebDriver:NewWindow", type="tab", focus=True)["handle"]
        self.command("WebDriver:SwitchToWindow", handle=handle)
        try:
            self.go(address)
            yield
        finally:
            self.command("WebDriver:CloseWindow")
            self.command("WebDriver:SwitchToWindow", handle=first)

    def run(self, body: str, given: Any = None) -> Any:
        """Return what this JavaScript, the body of an async function, returns."""
        script = RUN.replace("BODY", body)
        outcome = self.command("WebDriver:ExecuteScript", script=script, args=[given])["value"]
        if "error" in outcome:
            raise ScriptError(f"in Firefox: {outcome.get('message')}\n{outcome['error']}")
        return outcome.get("value")

    def until(self, condition: str) -> None:
        """Wait until this JavaScript expression holds."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < deadline, f"in Firefox this never became true: {condition}"
            time.sleep(0.05)

    @contextmanager
    def without(self, preference: str) -> Iterator[None]:
        """Documents that begin meanwhile have it switched off, as in about:config."""
        self._prefer(preference, False)
        try:
            yield
        finally:
            self._prefer(preference, True)

    def _prefer(self, preference: str, value: bool) -> None:
        self.command("Marionette:SetContext", value="chrome")
        script = "Services.prefs.setBoolPref(...arguments)"
        self.command("WebDriver:ExecuteScript", script=script, args=[preference, value])
        self.command("Marionette:SetContext", value="content")

    def click(self, selector: str) -> None:
        self.command("WebDriver:ElementClick", id=self._element(selector))

    def type(self, selector: str, text: str) -> None:
        self.command("WebDriver:ElementSendKeys", id=self._element(selector), text=text)

    def _element(self, selector: str) -> str:
        found = self.command("WebDriver:FindElement", using="css selector", value=selector)
        element: str = found["value"][ELEMENT]
        return element


def environment(profile: Path) -> dict[str, str]:
    """Vulkan is the other browser's SwiftShader, so that all tests compute alike."""
    ours = {**os.environ, "HOME": str(profile)}
    icd = swiftshader_icd()
    # Tests outside of browsers that ran before may have chosen it, too.
    if icd is None or os.environ.get("VK_ICD_FILENAMES", str(icd)) != str(icd):
        return ours
    ours["VK_ICD_FILENAMES"] = str(icd)
    loader = icd.parent / "libvulkan.so.1"
    if loader.is_file():  # alone in a folder: its neighbours are not for Firefox
        libraries = profile / "libraries"
        libraries.mkdir()
        (libraries / loader.name).symlink_to(loader)
        ours["LD_LIBRARY_PATH"] = str(libraries)
    return ours
