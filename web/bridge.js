// The bridge between Python and navigator.gpu, or the CPU. It decides nothing: every size and label comes from Python.

import { createDevice } from "./bridge/device.js";
import { BridgeFault } from "./bridge/fault.js";
import { createFiles } from "./bridge/files.js";
import { createHeap } from "./bridge/heap.js";
import { createObjects } from "./bridge/objects.js";
import { createReplay } from "./bridge/replay.js";
import { turn } from "./bridge/turn.js";

export { BridgeFault };

/** What Python finds as `inpage_bridge.bridge`. */
export function createBridge() {
  const heap = createHeap();
  const gpu = createDevice(() => {
    objects.clear();
    stagingPool.clear();
  });
  const { objects, find, calls: objectCalls } = createObjects(gpu);
  const { stagingPool, calls: replayCalls } = createReplay(gpu, find, heap);
  const { given, calls: fileCalls } = createFiles(heap);

  // Counted, so that tests can hold the bridge to O(1) calls a token.
  const counted = (/** @type {Record<string, any>} */ calls) => Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [name, (/** @type {any[]} */ ...args) => {
      bridge.calls++;
      return call(...args);
    }]),
  );
  const bridge = {
    ...counted({ ...gpu.calls, ...objectCalls, ...replayCalls, ...fileCalls }),
    calls: 0,
    requestAdapter: gpu.requestAdapter,
    turn: () => new Promise((turned) => { turn(() => turned(null)); }),
    attachHeap: (/** @type {() => ArrayBuffer} */ getter) => { heap.buffer = getter; },
    given,
    /** The CPU's half, for whoever wants it. */
    async bringCpu() {
      const { createCpu } = await import("./bridge/cpu.js");
      const { machines, calls } = createCpu(heap);
      return { ...counted(calls), machines };
    },
    // For tests and the curious.
    objects,
    device: gpu.device,
    heapBytes: () => heap.buffer().byteLength,
  };
  return bridge;
}
