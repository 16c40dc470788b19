"""The browsers that the tests drive: where they are, and how to start Chromium with WebGPU."""

import os
import platform
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from py_runtime.app.software_gpu import CHROMIUM, chosen_or_on_path, chromium
from tools.errors import UserError, exit_status

FIREFOX = "FIREFOX"
FIREFOX_NAMES = ("firefox-esr", "firefox")

# WebGPU on SwiftShader: the same adapter, and the same numbers, with or without a graphics card.
WEBGPU_FLAGS = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
QUIET_FLAGS = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
# Dawn then clears workgroup memory in a loop of its own. SwiftShader's way is a store for every
# number, and compiling those takes ten times as long as compiling a large kernel itself.
CLEARING_FLAG = "--disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension"
# Dawn then writes out products of bytes. SwiftShader's own take seven times as long to compile.
BYTES_FLAG = "--enable-dawn-features=polyfill_packed_4x8_dot_product"

# In each window of a test Chromium loads two pages of its own, for suggestions below an address bar
# that nobody sees: a third of the work until a page of ours is ready. The switch counts once, so
# that what Playwright leaves out stands here, too.
LEFT_OUT = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AimEnabled",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)


class BrowserError(UserError):
    """An error of a missing browser that says what to do about it."""


def find() -> Path:
    """$CHROMIUM, else a Chromium on the PATH, else Playwright's own."""
    if found := chromium():
        return found
    raise missing(
        CHROMIUM,
        "no browser for the tests: install Chromium or Google Chrome, or set CHROMIUM=/path/to/it, "
        f"or run: {sys.executable} -m playwright install --with-deps chromium",
    )


def find_firefox() -> Path:
    """Find $FIREFOX, else a Firefox on the PATH.

    Playwright's own is not the one that people have.
    """
    if found := chosen_or_on_path(FIREFOX, FIREFOX_NAMES):
        return found
    raise missing(FIREFOX, "no Firefox for the tests: install it, or set FIREFOX=/path/to/it")


def missing(variable: str, advice: str) -> BrowserError:
    """Advice is for those who have not chosen one."""
    if chosen := os.environ.get(variable):
        return BrowserError(f"{variable}={chosen} is not a program that can be run")
    return BrowserError(advice)


def launch_flags() -> list[str]:
    """Return the flags with which WebGPU runs without a graphics card and a screen."""
    return [*WEBGPU_FLAGS, *QUIET_FLAGS]


def flags_for_tests() -> list[str]:
    """Return the flags for tests, which compile many kernels that were made for graphics cards."""
    left_out = f"--disable-features={','.join(LEFT_OUT)}"
    return [*launch_flags(), CLEARING_FLAG, BYTES_FLAG, left_out]


def can_install() -> bool:
    """Return whether this is Debian and we are root; Ubuntu's package only refers to a snap."""
    try:
        distribution = platform.freedesktop_os_release()["ID"]
    except OSError:
        return False
    return distribution == "debian" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(package: str) -> None:
    """Install a package with apt-get; BrowserError has its last words."""
    for command in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        apt = subprocess.run(["apt-get", "-qq", *command], capture_output=True, text=True)
        if apt.returncode != 0:
            last_line = (apt.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise BrowserError(f"apt-get {command[0]} failed: {last_line}")


def find_or_install(name: str) -> Path:
    """BrowserError where neither works."""
    find_it, package = BROWSERS[name]
    try:
        return find_it()
    except BrowserError:
        if os.environ.get(name.upper()) or not can_install():
            raise
        print(f"installing Debian's {package} for the tests", flush=True)
        install(package)
        return find_it()


def make_ready(*names: str) -> None:
    """Find or install these browsers before the tests."""
    for name in names:
        print(f"browser for the tests: {find_or_install(name)}")


BROWSERS = {"chromium": (find, "chromium"), "firefox": (find_firefox, "firefox-esr")}

if __name__ == "__main__":
    sys.exit(exit_status(partial(make_ready, *(sys.argv[1:] or ["chromium"]))))
