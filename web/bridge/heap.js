// Python's memory. Ask for it anew each time: a heap that grew has a new ArrayBuffer.

import { BridgeFault } from "./fault.js";

/** @typedef {{ buffer: () => ArrayBuffer }} Heap */

/** @returns {Heap} Python's memory, once somebody has set where it is. */
export const createHeap = () => ({
  buffer() { throw new BridgeFault("internal", "the Python heap is not attached"); },
});
