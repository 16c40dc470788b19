// The hot path: uploads, plans and read-backs, in one call each. Tables of integers lie in Python's heap.

import { BridgeFault } from "./fault.js";

/** @import { EncodePlan, Plan, ReplayCalls } from "../calls.d.ts" */

const PLAN_COLUMNS = 3; // workgroups x, y, z of a dispatch; source offset, target offset, bytes of a copy
const WRITE_COLUMNS = 4; // buffer handle, buffer offset, heap address, bytes
const READ_COLUMNS = 4; // the same, the other way round
const NO_PLAN = 0;
const MIN_STAGING = 256; // bytes
const NUDGE_MILLISECONDS = 1; // some browsers ask the GPU what is done only now and then, or at a submit
const NUDGE_SHARE = 8; // each pause between nudges is this share of the wait so far: an eighth

/** @param {number} bytes */
const wholeWords = (bytes) => Math.max(4, (bytes + 3) & ~3);

/**
 * @param {import("./device.js").DeviceHolder} gpu
 * @param {import("./objects.js").Objects["find"]} find
 * @param {import("./heap.js").Heap} heap
 */
export function createReplay(gpu, find, heap) {
  /** @type {Map<number, GPUBuffer[]>} */
  const stagingPool = new Map(); // bytes → idle staging buffers

  /** @type {(queue: GPUQueue, writesAt: number, writeCount: number) => void} */
  function write(queue, writesAt, writeCount) {
    const memory = heap.buffer();
    const rows = new Uint32Array(memory, writesAt, writeCount * WRITE_COLUMNS);
    for (let at = 0; at < rows.length; at += WRITE_COLUMNS) {
      queue.writeBuffer(find(rows[at]), rows[at + 1], memory, rows[at + 2], rows[at + 3]);
    }
  }

  /** @type {(at: number, plan: Plan) => Uint32Array} */
  const countsOf = (at, { isCopy }) => new Uint32Array(heap.buffer(), at, isCopy.length * PLAN_COLUMNS);

  /** @type {EncodePlan} */
  function encodePlan(encoder, plan, countsAt) {
    const { label, isCopy, first, second } = plan;
    const counts = countsOf(countsAt, plan);
    /** @type {GPUComputePassEncoder | null} */
    let pass = null;
    for (let step = 0, at = 0; step < isCopy.length; step++, at += PLAN_COLUMNS) {
      if (isCopy[step]) {
        if (!counts[at + 2]) continue;
        pass?.end();
        pass = null;
        encoder.copyBufferToBuffer(first[step], counts[at], second[step], counts[at + 1], counts[at + 2]);
      } else if (counts[at]) {
        pass ??= encoder.beginComputePass({ label });
        pass.setPipeline(first[step]);
        pass.setBindGroup(0, second[step]);
        pass.dispatchWorkgroups(counts[at], counts[at + 1], counts[at + 2]);
      }
    }
    pass?.end();
  }

  /** Empty submits until the function that it gives is called. @type {(queue: GPUQueue) => () => void} */
  function nudge(queue) {
    const started = performance.now();
    const again = () => setTimeout(() => {
      queue.submit([]);
      timer = again();
    }, Math.max(NUDGE_MILLISECONDS, (performance.now() - started) / NUDGE_SHARE));
    let timer = again();
    return () => clearTimeout(timer);
  }

  /** What was mapped goes to its places. @type {(staging: GPUBuffer, total: number, reads: Uint32Array) => void} */
  function handOver(staging, total, reads) {
    const mapped = new Uint8Array(staging.getMappedRange(0, total));
    const target = new Uint8Array(heap.buffer());
    for (let at = 0, offset = 0; at < reads.length; at += READ_COLUMNS) {
      target.set(mapped.subarray(offset, offset + reads[at + 3]), reads[at + 2]);
      offset += wholeWords(reads[at + 3]);
    }
    staging.unmap();
    giveStaging(staging);
  }

  /** @type {(device: GPUDevice, bytes: number) => GPUBuffer} */
  function takeStaging(device, bytes) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, MIN_STAGING)));
    return stagingPool.get(size)?.pop() ?? device.createBuffer({
      label: `staging of ${size} bytes`, size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
  }

  /** @param {GPUBuffer} buffer */
  function giveStaging(buffer) {
    const idle = stagingPool.get(buffer.size);
    if (idle) idle.push(buffer);
    else stagingPool.set(buffer.size, [buffer]);
  }

  /** @type {ReplayCalls} */
  const calls = {
    submit(plan, countsAt, writesAt, writeCount) {
      const device = gpu.live();
      write(device.queue, writesAt, writeCount);
      if (plan === NO_PLAN) return;
      const found = find(plan);
      const encoder = device.createCommandEncoder({ label: found.label });
      encodePlan(encoder, found, countsAt);
      device.queue.submit([encoder.finish()]);
    },
    async submitTimed(plan, countsAt, dispatches, ticks) {
      const { submitTimed } = await import("./timed.js");
      submitTimed(gpu.live(), find(plan), countsOf(countsAt, find(plan)), dispatches, find(ticks));
    },
    async submitAndRead(plan, countsAt, writesAt, writeCount, readsAt, readCount, repeat) {
      const device = gpu.live();
      write(device.queue, writesAt, writeCount);
      const reads = new Uint32Array(heap.buffer(), readsAt, readCount * READ_COLUMNS).slice();
      let total = 0;
      for (let at = 0; at < reads.length; at += READ_COLUMNS) total += wholeWords(reads[at + 3]);
      const staging = takeStaging(device, total);
      for (let round = 1; round < repeat; round++) calls.submit(plan, countsAt, 0, 0);
      const encoder = device.createCommandEncoder({ label: "submit and read" });
      if (plan !== NO_PLAN) encodePlan(encoder, find(plan), countsAt);
      for (let at = 0, offset = 0; at < reads.length; at += READ_COLUMNS) {
        const bytes = wholeWords(reads[at + 3]);
        encoder.copyBufferToBuffer(find(reads[at]), reads[at + 1], staging, offset, bytes);
        offset += bytes;
      }
      device.queue.submit([encoder.finish()]);
      const stopNudging = nudge(device.queue);
      try {
        await staging.mapAsync(GPUMapMode.READ, 0, total);
      } catch (error) {
        staging.destroy();
        const { message } = /** @type {Error} */ (error);
        throw await gpu.lossOrFault(() => gpu.uncaptured.splice(0).join("\n") + message);
      } finally {
        stopNudging();
      }
      handOver(staging, total, reads);
      if (gpu.uncaptured.length) throw new BridgeFault("validation", gpu.uncaptured.splice(0).join("\n"));
    },
    async finishWrites() {
      await gpu.live().queue.onSubmittedWorkDone();
      gpu.mustNotBeLost();
    },
  };
  return { stagingPool, calls };
}
