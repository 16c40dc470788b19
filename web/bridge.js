// The bridge between Python and navigator.gpu. It decides nothing: every size and label comes from Python.

import { createDevice } from "./bridge/device.js";
import { BridgeFault } from "./bridge/fault.js";
import { createFiles } from "./bridge/files.js";
import { createHeap } from "./bridge/heap.js";
import { createObjects } from "./bridge/objects.js";
import { createReplay } from "./bridge/replay.js";

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

  const calls = { ...gpu.calls, ...objectCalls, ...replayCalls, ...fileCalls };
  const bridge = {
    ...calls,
    calls: 0,
    requestAdapter: gpu.requestAdapter,
    attachHeap: (/** @type {() => ArrayBuffer} */ getter) => { heap.buffer = getter; },
    given,
    // For tests and the curious.
    objects,
    device: gpu.device,
    heapBytes: () => heap.buffer().byteLength,
  };
  // Counted, so that tests can hold the bridge to O(1) calls a token.
  for (const [name, call] of Object.entries(/** @type {Record<string, (...args: any[]) => any>} */ (calls))) {
    const counted = (/** @type {any[]} */ ...args) => {
      bridge.calls++;
      return call(...args);
    };
    Object.assign(bridge, { [name]: counted });
  }
  return bridge;
}
