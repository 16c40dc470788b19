"""Sums and largest values over a workgroup: whatever its subgroups are, and without any.

The software adapter's subgroups have four lanes. Larger ones, as Intel's 8 to 32 or AMD's 64, are
imitated: subgroup operations are replaced by the same over workgroup memory, for lanes that count
as a subgroup; what is done with their results is the code that runs everywhere.
"""

import re

import numpy as np
import pytest

from py_runtime.gpu import (
    BindGroupSpec,
    Binding,
    BufferSpec,
    Device,
    Dispatch,
    PipelineSpec,
)
from py_runtime.gpu.shader_sources import all_shaders
from tests.runners import NativeRunner, wait

WORKGROUPS = [32, 128, 256]
SIZES = [4, 8, 16, 32, 64, 128]
OUTCOMES = 6
KERNEL = """
const WORKGROUP = %du;
@group(0) @binding(0) var<storage, read> given: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4f>;

@compute @workgroup_size(WORKGROUP)
fn main(own: Invocation) {
  let values = given[own.lane];
  out[own.lane] = vec4f(sum_of_four(own, values.x));
  out[WORKGROUP + own.lane] = sums_of_four(own, values);
  out[2u * WORKGROUP + own.lane] = vec4f(sum_of_all(own, values.x));
  out[3u * WORKGROUP + own.lane] = sums_of_all(own, values);
  workgroupBarrier();
  out[4u * WORKGROUP + own.lane] = vec4f(largest_of_all(own, values.x));
  out[5u * WORKGROUP + own.lane] = each_largest_of_all(own, values);
}
"""
IMITATION = """
const SIZE = min(%du, WORKGROUP);
var<workgroup> imitated: array<vec4f, WORKGROUP>;

fn put(own: Invocation, values: vec4f) {
  workgroupBarrier();
  imitated[own.lane] = values;
  workgroupBarrier();
}
fn imitatedShuffleXor(own: Invocation, values: vec4f, by: u32) -> vec4f {
  put(own, values);
  return imitated[own.lane ^ by];
}
fn imitatedAdd(own: Invocation, values: vec4f) -> vec4f {
  put(own, values);
  var sum = vec4f();
  for (var at = 0u; at < SIZE; at++) {
    sum += imitated[own.lane / SIZE * SIZE + at];
  }
  return sum;
}
fn imitatedMax(own: Invocation, values: vec4f) -> vec4f {
  put(own, values);
  var most = values;
  for (var at = 0u; at < SIZE; at++) {
    most = max(most, imitated[own.lane / SIZE * SIZE + at]);
  }
  return most;
}
"""


def imitating(size: int) -> str:
    """lanes_subgroups.wgsl with subgroups of another size."""
    source = re.sub(r"  @builtin\(subgroup_\w+\) \w+: u32,\n", "", lanes("subgroups"))
    source = source.replace("own.subgroup_lane", f"(own.lane % {size}u)")
    source = source.replace("own.subgroup_size", f"{size}u")
    source = re.sub(
        r"subgroup(\w+)\((value|pair)\b([^)]*)\)", r"imitated\1(own, vec4f(\2)\3).x", source
    )
    source = re.sub(r"subgroup(\w+)\((values|pairs)\b([^)]*)\)", r"imitated\1(own, \2\3)", source)
    assert not re.search(r"\bsubgroup[A-Z]", source)
    return source + IMITATION % size


def lanes(name: str) -> str:
    return all_shaders().file(f"shared/lanes_{name}").source


def results(device: Device, source: str, workgroup: int, given: np.ndarray) -> np.ndarray:
    """Run the kernel and return [OUTCOMES, workgroup, 4]."""

    async def work() -> bytes:
        inputs, out = await device.create_buffers(
            [BufferSpec("given", given.nbytes), BufferSpec("out", OUTCOMES * given.nbytes)]
        )
        (pipeline,) = await device.create_compute_pipelines(
            [PipelineSpec("lanes", source + KERNEL % workgroup)]
        )
        (group,) = await device.create_bind_groups(
            [BindGroupSpec("lanes", pipeline, (Binding(inputs), Binding(out)))]
        )
        plan = device.create_plan("lanes", [Dispatch("lanes", pipeline, group)])
        device.write_buffer(inputs, given)
        device.submit(plan, np.ones((1, 3), np.uint32))
        read = await device.read_buffer(out, OUTCOMES * given.nbytes)
        device.release([group, plan])
        device.destroy_buffers([inputs, out])
        return bytes(read)

    return np.frombuffer(wait(work()), np.float32).reshape(OUTCOMES, workgroup, 4)


def check(native: NativeRunner, source: str, workgroup: int) -> None:
    given = np.random.default_rng(workgroup).normal(-3, 1, (workgroup, 4)).astype(np.float32)
    got = results(native.device, source, workgroup, given)
    fours = given.reshape(-1, 4, 4).sum(1).repeat(4, axis=0)
    sums, largest = given.sum(0), given.max(0)
    np.testing.assert_allclose(got[0], fours[:, :1].repeat(4, axis=1), rtol=1e-5)
    np.testing.assert_allclose(got[1], fours, rtol=1e-5)
    np.testing.assert_allclose(got[2], np.full_like(given, sums[0]), rtol=1e-5)
    np.testing.assert_allclose(got[3], np.broadcast_to(sums, given.shape), rtol=1e-5)
    np.testing.assert_array_equal(got[4], np.full_like(given, largest[0]))
    np.testing.assert_array_equal(got[5], np.broadcast_to(largest, given.shape))


@pytest.mark.parametrize("workgroup", WORKGROUPS)
def test_without_subgroups(workgroup: int, native: NativeRunner) -> None:
    check(native, lanes("memory"), workgroup)


@pytest.mark.parametrize("workgroup", WORKGROUPS)
def test_with_the_adapters_own_subgroups(workgroup: int, native: NativeRunner) -> None:
    check(native, all_shaders().file("shared/subgroups").source + lanes("subgroups"), workgroup)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("workgroup", WORKGROUPS)
def test_with_subgroups_of_any_size(workgroup: int, size: int, native: NativeRunner) -> None:
    check(native, imitating(size), workgroup)
