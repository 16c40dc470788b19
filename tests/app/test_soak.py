"""A thousand short turns leave nothing behind: no GPU buffer, no proxy, no heap."""

from typing import Any

import pytest

from tests.app.conftest import ApiPage

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

# Turns of three tokens; the messages differ, so that each turn rolls the cache back and prefills.
TURNS = """
for (let turn = given[0]; turn < given[1]; turn++) {
  const messages = [{ role: "user", content: `turn ${turn % 50}` }];
  const request = { messages, max_tokens: 3, ignore_eos: true, stream: turn % 3 === 0 };
  const answer = await inpage.chat.completions.create(request);
  if (request.stream) for await (const chunk of answer) void chunk;
}
"""
# Pyodide itself tells of its proxies: PyProxies since tracing began, and references to JavaScript.
TRACE = "import pyodide_js; pyodide_js._module.enable_pyproxy_allocation_tracing()"
COUNTS = """
import gc
from inpage_bridge import bridge
from py_runtime.app import in_page
gc.collect()
{
    "buffers": engine.device.counters.buffers_alive,
    "bridge objects": bridge.objects.size,
    "py proxies": pyodide_js._module.pyproxy_alloc_map.size,
    "js references": pyodide_js._module._hiwire_num_refs(),
    "wasm heap": bridge.heapBytes(),
    "calls running": len(in_page._running),
    "python objects": len(gc.get_objects()),
}
"""


def test_a_thousand_turns(api: ApiPage) -> None:
    session = api.page.context.new_cdp_session(api.page)
    session.send("HeapProfiler.enable")
    api.python(TRACE)

    def counted(until: int, since: int) -> dict[str, Any]:
        api.run(TURNS, [since, until])
        session.send("HeapProfiler.collectGarbage")
        page_heap = api.page.evaluate("performance.memory.usedJSHeapSize")
        return {**api.python(COUNTS), "page heap": page_heap}

    early = counted(100, 0)
    late = counted(1000, 100)
    noise = {"python objects": 100, "page heap": 200_000}  # 900 turns that leak would show
    grown = {name: late[name] - early[name] for name in late if late[name] > early[name]}
    assert {name: by for name, by in grown.items() if by > noise.get(name, 0)} == {}
    assert early["buffers"] > 0
    assert early["js references"] > 0
