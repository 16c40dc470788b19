// A plan whose dispatches say when they began and ended. Fetched when somebody profiles.

/**
 * So many dispatches, each in a pass of its own; its begin and end in nanoseconds are left in the buffer `ticks`.
 * @param {GPUDevice} device
 * @param {import("../calls.d.ts").Plan} plan
 * @param {Uint32Array} counts three a step
 * @param {number} dispatches
 * @param {GPUBuffer} ticks
 */
export function submitTimed(device, { label, isCopy, first, second }, counts, dispatches, ticks) {
  const encoder = device.createCommandEncoder();
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 * dispatches });
  let timed = 0;
  for (let step = 0; step < isCopy.length; step++) {
    const [x, y, z] = counts.subarray(3 * step);
    if (isCopy[step] && z) encoder.copyBufferToBuffer(first[step], x, second[step], y, z);
    if (isCopy[step] || !x) continue;
    const timestampWrites = { querySet, beginningOfPassWriteIndex: timed++, endOfPassWriteIndex: timed++ };
    const pass = encoder.beginComputePass({ label, timestampWrites });
    pass.setPipeline(first[step]);
    pass.setBindGroup(0, second[step]);
    pass.dispatchWorkgroups(x, y, z);
    pass.end();
  }
  encoder.resolveQuerySet(querySet, 0, 2 * dispatches, ticks, 0);
  device.queue.submit([encoder.finish()]);
  querySet.destroy();
}
