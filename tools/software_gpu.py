"""Native WebGPU where no graphics card is: on the software driver that comes with the browser."""

import ctypes
import ctypes.util
import os
import sys

from tools import browser


def use_software_if_alone() -> None:
    """Where the system has no Vulkan at all, the browser's is better than none."""
    if sys.platform == "linux" and ctypes.util.find_library("vulkan") is None:
        use_browsers_vulkan()


def use_browsers_vulkan() -> None:
    """Points Vulkan at SwiftShader, unless the caller has chosen a driver already.

    Tests want it even beside a graphics card: natively and in the page they then compute alike.
    """
    try:
        icd = browser.swiftshader_icd()
    except browser.BrowserError:
        return
    if icd is None or "VK_ICD_FILENAMES" in os.environ:
        return
    os.environ["VK_ICD_FILENAMES"] = str(icd)
    loader = icd.parent / "libvulkan.so.1"
    if loader.is_file():  # a machine without a Vulkan loader borrows the browser's
        ctypes.CDLL(str(loader), ctypes.RTLD_GLOBAL)
