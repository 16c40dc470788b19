"""The engine room in the dock: timeline, graph, memory and kernel lab, as a user meets them."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.web.user import User

pytestmark = pytest.mark.browser

LAYER = ["qkv_rotary_cache", "attend_linear", "swiglu", "linear_residual"]


def panel(user: User, name: str, heading: str, settings: str = "") -> Locator:
    """Open a panel by its link."""
    user.page.evaluate(f"location.hash = '#panel={name}{settings}'")
    expect(user.page.locator("#dockTitle")).to_have_text(heading)
    return user.page.locator(f"#panel-{name}")


def exported(page: Page, kind: str) -> bytes:
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=kind).click()
    return download.value.path().read_bytes()


def test_the_timeline_shows_every_dispatch(user: User) -> None:
    timeline = panel(user, "timeline", "Timeline", "&context=40")
    drawing = timeline.get_by_role("listbox", name="Dispatches")
    expect(drawing).to_be_visible()
    count = timeline.locator("rect[role=option]").count()
    assert count > 10
    expect(timeline).to_contain_text("Times by the device's own clock")
    expect(timeline).to_contain_text(f"{count} dispatches")
    drawing.focus()
    for _ in range(3):
        user.page.keyboard.press("ArrowRight")
    expect(timeline.get_by_role("heading", name="inpage.qkv_rotary_cache.default")).to_be_visible()
    expect(timeline.locator(".room-source")).to_contain_text("in layers.0.self_attn.q_proj")
    user.page.keyboard.press("+")
    expect(timeline.locator("rect[role=option]")).not_to_have_count(count)
    user.page.keyboard.press("0")
    expect(timeline.locator("rect[role=option]")).to_have_count(count)
    timeline.get_by_label("Search").fill("swiglu")
    expect(timeline.locator("rect.dispatch.other")).not_to_have_count(0)
    timeline.get_by_label("Search").fill("")
    timeline.get_by_role("button", name="Open the kernel").click()
    kernel = user.page.locator("#panel-kernel_lab").get_by_role("combobox", name="Kernel")
    expect(kernel).to_have_value(re.compile("linear/"))
    user.page.get_by_role("tab", name="Timeline").click()
    timeline.get_by_role("button", name="Show in the graph").click()
    shown = user.page.locator("#panel-graph").get_by_role("button", pressed=True)
    expect(shown).to_contain_text("qkv_rotary_cache")
    user.page.get_by_role("tab", name="Timeline").click()
    timeline.get_by_text("Layer", exact=True).click()
    table = timeline.get_by_role("table", name="Where the time goes")
    expect(table).to_contain_text("Layer 1")
    assert len(json.loads(exported(user.page, "Data (JSON)"))) == count
    assert b"<svg" in exported(user.page, "Picture (SVG)")


def test_two_runs_are_compared(user: User) -> None:
    timeline = panel(user, "timeline", "Timeline")
    timeline.get_by_label("After").fill("200")
    timeline.get_by_role("button", name="Measure").click()
    beside = timeline.get_by_label("Compare with")
    beside.select_option(index=1)
    expect(timeline.get_by_role("columnheader", name="Difference")).to_be_visible()
    with user.page.expect_download() as download:
        timeline.get_by_role("button", name="Trace for Perfetto").click()
    trace = json.loads(download.value.path().read_text())
    events = [event for event in trace["traceEvents"] if event.get("cat") == "dispatch"]
    assert len({event["args"]["step"] for event in events}) == len(events) > 10
    assert trace["otherData"]["context"] == 200


def test_the_graph_is_drawn_before_and_after_the_passes(user: User) -> None:
    graph = panel(user, "graph", "Graph", "&section=layer 1&tokens=5&context=20")
    nodes = graph.locator(".node")
    expect(nodes).to_have_count(len(LAYER))
    for name in LAYER:
        expect(graph.get_by_role("button", name=f"{name} · ")).to_be_visible()
    expect(graph).to_contain_text("start = 20")
    graph.get_by_role("button", name="swiglu").press("Enter")
    expect(graph.get_by_role("heading", name="inpage.swiglu.default")).to_be_visible()
    expect(graph.get_by_role("table", name="Arguments")).to_contain_text("[1, 5, 64]")
    graph.get_by_role("button", name="What does it compute?").click()
    expect(graph.get_by_role("img", name="How often each size occurs")).to_be_visible()
    graph.get_by_role("button", name="Measure times").click()
    expect(graph.get_by_role("button", name="swiglu")).to_contain_text(re.compile("[µm]s"))
    graph.get_by_text("Before", exact=True).click()
    expect(nodes).to_have_count(19)
    expect(graph.get_by_role("button", name="silu")).to_contain_text("[1, 5, 160]")
    graph.get_by_role("button", name="Next section").click()
    expect(user.page).to_have_url(re.compile("section=head"))
    expect(graph.get_by_role("button", name="silu")).to_be_hidden()
    expect(graph.get_by_role("button", name="rms_norm")).to_be_visible()


def test_the_memory_adds_up(user: User) -> None:
    memory = panel(user, "memory", "Memory")
    totals = memory.get_by_role("table", name="Memory by purpose")
    expect(totals).to_contain_text("Caches and states")
    view = user.page.evaluate("inpage.glass('memory')")
    peak = user.page.evaluate("inpage.python('graph.memory.peak')")
    assert sum(view["totals"].values()) == view["nbytes"] == peak
    colours = memory.locator(".whole-bar span, .swatch").evaluate_all(
        "all => all.map(each => getComputedStyle(each).backgroundColor)"
    )
    assert len(set(colours)) == 5
    assert "rgba(0, 0, 0, 0)" not in colours
    memory.get_by_label("Section").select_option("layer 1")
    expect(memory.get_by_role("table", name="Buffers")).to_contain_text("k_cache")
    expect(memory.get_by_role("img", name="shared buffers")).to_be_visible()
    rows = json.loads(exported(user.page, "Data (JSON)"))
    assert sum(row["nbytes"] for row in rows) == peak


def test_on_the_processor_kernels_are_only_read(user: User) -> None:
    lab = panel(user, "kernel_lab", "Kernel lab")
    expect(lab).to_contain_text("On the processor, kernels are C")
    expect(lab).not_to_contain_text("undefined")
    editor = lab.get_by_label("WGSL of the kernel")
    expect(editor).to_have_value(re.compile("@compute"))
    expect(editor).not_to_be_editable()
    expect(lab.get_by_role("button", name="Try it")).to_be_hidden()


def test_it_is_read_by_everybody(user: User) -> None:
    for name, heading in (
        ("timeline", "Timeline"),
        ("graph", "Graph"),
        ("memory", "Memory"),
        ("kernel_lab", "Kernel lab"),
    ):
        opened = panel(user, name, heading)
        expect(opened.locator(":scope > *").first).to_be_attached()
        for scheme in ("light", "dark"):
            user.page.emulate_media(color_scheme=scheme)
            assert user.faults_of_access() == [], (name, scheme)
    user.page.set_viewport_size({"width": 390, "height": 800})
    sideways = "() => document.scrollingElement.scrollWidth > innerWidth"
    assert not user.page.evaluate(sideways)
    user.page.set_viewport_size({"width": 1280, "height": 720})
    assert user.complaints == []


@pytest.fixture(scope="module")
def on_gpu(browser: Browser, gpu_toy_site_url: str) -> Iterator[User]:
    context = browser.new_context()
    user = User(context.new_page(), gpu_toy_site_url)
    user.open()
    user.load()
    yield user
    context.close()


def greedy(user: User) -> str:
    code = "[token async for token in model.greedy([1, 2, 3], 8)]"
    return str(user.page.evaluate("code => inpage.python(code)", code))


@pytest.mark.thorough  # the GPU; tests/glass/test_kernel_lab.py has the lab natively
def test_a_kernel_is_edited_tried_kept_and_taken_back(on_gpu: User) -> None:
    before = greedy(on_gpu)
    lab = panel(on_gpu, "kernel_lab", "Kernel lab", "&kernel=reduce/rms_norm")
    editor = lab.get_by_label("WGSL of the kernel")
    expect(editor).to_have_value(re.compile("inverseSqrt"))
    own = editor.input_value()
    line = 1 + next(at for at, text in enumerate(own.splitlines()) if "let scale =" in text)
    editor.fill(own.replace("let scale =", "let scale ! ="))
    lab.get_by_role("button", name="Try it").click()
    expect(lab).to_contain_text("It does not compile.")
    expect(lab.get_by_role("button", name=f"Line {line}, column")).to_be_visible()
    expect(lab.locator(".lab-lines .faulty")).to_have_text(f"{line}\n")

    editor.fill(own.replace("value *= weight[column];", "value *= weight[column] * 1.05;"))
    lab.get_by_role("button", name="Try it").click()
    expect(lab).to_contain_text("It computes something else, so it cannot be kept.")
    expect(lab.get_by_role("button", name="Keep")).to_be_disabled()
    assert greedy(on_gpu) == before

    editor.fill(own.replace("inverseSqrt(sum", "1.0 / sqrt(sum"))
    lab.get_by_role("button", name="Try it").click()
    expect(lab).to_contain_text("It computes the same: you can keep it.")
    expect(lab.get_by_role("table", name="Time before and after")).to_be_visible()
    lab.get_by_role("button", name="Keep").click()
    expect(lab).to_contain_text("The model runs it from now on")
    assert greedy(on_gpu) == before
    with on_gpu.page.expect_download() as download:
        lab.get_by_role("button", name="Export .wgsl").click()
    assert "1.0 / sqrt(sum" in download.value.path().read_text()
    lab.get_by_role("button", name="Undo all changes").click()
    expect(editor).to_have_value(own)
    assert greedy(on_gpu) == before
    assert on_gpu.complaints == []
