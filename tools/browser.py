"""Finds the Chromium that the tests drive, and knows how to start it with WebGPU."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tools.errors import UserError, exit_status

NAMES_ON_PATH = ("chromium", "chromium-browser", "google-chrome")

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

# Debian and Google start the browser through a script elsewhere than its files.
BROWSER_FOLDERS = ("/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/google/chrome")


class BrowserError(UserError):
    """There is no browser for the tests; says what to do about it."""


def find() -> Path:
    """$CHROMIUM, else a Chromium on the PATH, else Playwright's own."""
    if chosen := os.environ.get("CHROMIUM"):
        if path := shutil.which(chosen):
            return Path(path)
        raise BrowserError(f"CHROMIUM={chosen} is not a program that can be run")
    for name in NAMES_ON_PATH:
        if path := shutil.which(name):
            return Path(path)
    if own := playwrights_own():
        return own
    raise BrowserError(
        "no browser for the tests: install Chromium or Google Chrome, or set CHROMIUM=/path/to/it, "
        f"or run: {sys.executable} -m playwright install --with-deps chromium"
    )


def playwrights_own() -> Path | None:
    """None where Playwright has not installed one."""
    # In a process of its own: Playwright's driver does not start inside a running event loop.
    script = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
    )
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    path = Path(asked.stdout.strip())
    return path if asked.returncode == 0 and path.is_file() else None


def launch_flags() -> list[str]:
    """With these WebGPU runs without a graphics card and a screen."""
    return [*WEBGPU_FLAGS, *QUIET_FLAGS]


def flags_for_tests() -> list[str]:
    """The same for tests, which compile many kernels that were made for graphics cards."""
    return [*launch_flags(), CLEARING_FLAG]


def swiftshader_icd() -> Path | None:
    """SwiftShader's Vulkan driver file beside the browser, for WebGPU outside of it."""
    for folder in (find().resolve().parent, *map(Path, BROWSER_FOLDERS)):
        icd = folder / "vk_swiftshader_icd.json"
        if icd.is_file():
            return icd
    return None


def can_install() -> bool:
    """Whether this is Debian and we are root. (Ubuntu's package only refers to a snap.)"""
    try:
        distribution = platform.freedesktop_os_release()["ID"]
    except OSError:
        return False
    return distribution == "debian" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install() -> None:
    """By apt-get; BrowserError with its last words."""
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        apt = subprocess.run(["apt-get", "-qq", *command], capture_output=True, text=True)
        if apt.returncode != 0:
            last_line = (apt.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise BrowserError(f"apt-get {command[0]} failed: {last_line}")


def find_or_install() -> None:
    """Before the tests; BrowserError where neither works."""
    try:
        path = find()
    except BrowserError:
        if os.environ.get("CHROMIUM") or not can_install():
            raise
        print("installing Debian's chromium for the tests", flush=True)
        install()
        path = find()
    print(f"browser for the tests: {path}")


if __name__ == "__main__":
    sys.exit(exit_status(find_or_install))
