"""The memory view: what graph.memory sums up, buffer by buffer."""

from dataclasses import asdict
from pathlib import Path

from py_runtime.glass.memory_view import MemoryView, memory_view
from py_runtime.graph import Graph
from py_runtime.model import Model
from tests.glass.room import greedy, loaded, with_model
from tests.runners import CpuRunner, wait


def test_totals_are_those_of_the_graph(cpu: CpuRunner, toy_model: Path) -> None:
    async def look(model: Model) -> MemoryView:
        view, report = memory_view(model), model.graph.memory
        assert view.totals == {name: asdict(report)[name] for name in view.totals}
        assert view.nbytes == report.peak
        assert view.unshared == report.unshared
        return view

    view = with_model(cpu, toy_model, look)
    caches = [each for each in view.buffers if each.purpose == "state"]
    assert [each.section for each in caches] == ["layer 0"] * 2 + ["layer 1"] * 2
    joined = next(each for each in view.buffers if len(each.parts) == 3)
    assert [part.split(".")[-2] for part in joined.parts] == ["q_proj", "k_proj", "v_proj"]
    assert joined.section == "layer 0"


def test_tenants_of_a_slot_take_turns_and_fit(cpu: CpuRunner, toy_model: Path) -> None:
    async def look(model: Model) -> MemoryView:
        return memory_view(model)

    view = with_model(cpu, toy_model, look)
    slots = view.slots
    assert any(len(slot.tenants) > 1 for slot in slots)
    assert all(slot.purpose == "intermediates" for slot in slots)
    for slot in slots:
        for before, after in zip(slot.tenants, slot.tenants[1:], strict=False):
            assert before.last < after.first
        assert max(tenant.nbytes for tenant in slot.tenants) == slot.nbytes
    tenants = [tenant for slot in slots for tenant in slot.tenants]
    assert sum(tenant.nbytes for tenant in tenants) == view.unshared


def test_others_on_the_device_are_seen(cpu: CpuRunner, toy_model: Path) -> None:
    async def look() -> None:
        async with loaded(cpu.device, toy_model) as first, loaded(cpu.device, toy_model) as second:
            await greedy(first)
            others = {each.owner: each for each in memory_view(first).others}
            assert others["Toy"].nbytes >= second.graph.memory.peak
            assert others["sampler"].nbytes > 0

    owners = cpu.device.owners
    before = list(owners.values()).count("Toy")  # models of other tests
    wait(look())
    assert list(owners.values()).count("Toy") == before


def test_what_a_graph_borrows_is_counted_where_it_lies(cpu: CpuRunner, toy_model: Path) -> None:
    async def look(model: Model) -> None:
        graph = model.graph
        derived = await Graph.load(graph.device, graph.written, base=graph)
        view = memory_view(derived)
        assert view.totals["constants"] == derived.memory.constants
        assert any(each.is_lent for each in view.buffers)
        assert view.nbytes == derived.memory.peak < graph.memory.peak
        derived.unload()

    with_model(cpu, toy_model, look)
