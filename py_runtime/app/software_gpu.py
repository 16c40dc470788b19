"""Native WebGPU where no graphics card is: on the software driver that comes with Chromium."""

import ctypes
import ctypes.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from py_runtime.base.platform import ON_LINUX

CHROMIUM = "CHROMIUM"  # the environment's word for which one to take
NAMES_ON_PATH = ("chromium", "chromium-browser", "google-chrome")
# Debian and Google start the browser through a script elsewhere than its files.
BROWSER_FOLDERS = ("/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/google/chrome")


def use_software_if_alone() -> None:
    """Use the browser's Vulkan where the system has none at all."""
    if ON_LINUX and ctypes.util.find_library("vulkan") is None:
        use_browsers_vulkan()


def use_browsers_vulkan() -> None:
    """Point Vulkan at SwiftShader, unless the caller has chosen a driver already.

    Tests want it even beside a graphics card: natively and in the page they then compute alike.
    """
    icd = swiftshader_icd()
    if icd is None or "VK_ICD_FILENAMES" in os.environ:
        return
    os.environ["VK_ICD_FILENAMES"] = str(icd)
    loader = icd.parent / "libvulkan.so.1"
    if loader.is_file():  # a machine without a Vulkan loader borrows the browser's
        ctypes.CDLL(str(loader), ctypes.RTLD_GLOBAL)


def swiftshader_icd() -> Path | None:
    """Return the file of SwiftShader's Vulkan driver that lies beside the browser."""
    program = chromium()
    if program is None:
        return None
    for folder in (program.resolve().parent, *map(Path, BROWSER_FOLDERS)):
        icd = folder / "vk_swiftshader_icd.json"
        if icd.is_file():
            return icd
    return None


def chromium() -> Path | None:
    """Return $CHROMIUM, else a Chromium on the PATH, else Playwright's own."""
    if found := chosen_or_on_path(CHROMIUM, NAMES_ON_PATH):
        return found
    return None if os.environ.get(CHROMIUM) else playwrights_own()


def chosen_or_on_path(variable: str, names: tuple[str, ...]) -> Path | None:
    """Return the program that the variable names, or else the first on the PATH."""
    chosen = os.environ.get(variable)
    paths = map(shutil.which, (chosen,) if chosen else names)
    return next((Path(path) for path in paths if path), None)


def playwrights_own() -> Path | None:
    """Return Playwright's Chromium, or None where it has not installed one."""
    # In a process of its own: Playwright's driver does not start inside a running event loop.
    script = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
    )
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    path = Path(asked.stdout.strip())
    return path if asked.returncode == 0 and path.is_file() else None
