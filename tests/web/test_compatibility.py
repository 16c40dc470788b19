"""An adapter of the compatibility level alone, as OpenGL ES has it: the page asks for that, too."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserType, Page, Route

from tests.toy_model import NAME
from tools import browser as browser_tools

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

# The level is OpenGL ES's; where the core level is asked for, Chromium takes Vulkan all the same.
FLAGS = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=opengles", *browser_tools.QUIET_FLAGS)
NO_CORE_ADAPTER = """
const { requestAdapter } = GPU.prototype;
GPU.prototype.requestAdapter = async function (options) {
  return options?.featureLevel === "compatibility" ? requestAdapter.call(this, options) : null;
};
"""


@pytest.fixture
def page(browser_type: BrowserType, gpu_toy_site_url: str) -> Iterator[Page]:
    """Open the page of a machine without a core adapter."""

    def hide_core_adapters(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=NO_CORE_ADAPTER + answer.text())

    executable = str(browser_tools.find())
    browser = browser_type.launch(executable_path=executable, args=list(FLAGS))
    page = browser.new_page()
    page.route("**/worker.js", hide_core_adapters)
    page.goto(gpu_toy_site_url)
    yield page
    browser.close()


def test_the_model_computes_as_torch_does(page: Page) -> None:
    report = page.evaluate("inpage.ready")
    assert report["device"]["kind"] == "gpu"
    # Not even subgroups, which its Vulkan has; clocks compute nothing.
    assert set(report["features"]) <= {"timestamp-query"}
    page.evaluate("name => inpage.load(name).then(() => null)", NAME)
    verified = page.evaluate("inpage.verify()")
    assert verified["ok"] is True
    assert [text["identical"] for text in verified["texts"]] == [True]
