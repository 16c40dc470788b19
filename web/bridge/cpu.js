// The CPU's half of the bridge: memories with kernels in them, and workers that run these (shaders/cpu/replay.c). It
// decides nothing either. Plans are replayed in slices, so that whatever else this thread has to do comes in between.

import { BridgeFault } from "./fault.js";
import { startWorker } from "./start_worker.js";

/** @import { CpuCalls, CpuExports, CpuJob, CpuMachine, CpuRun, CpuSubmitted } from "../calls.d.ts" */

const SLICE_MILLISECONDS = 30;
const TURNS_BETWEEN = 8; // of the event loop between two slices: to stop takes Python several
const LOST = -1; // what replay() says of a thread that does not finish its part
const MODULE_COLUMNS = 2; // heap address, bytes
const WRITE_COLUMNS = 3; // address, heap address (0: zeros), bytes
const READ_COLUMNS = 3; // the same, the other way round
const DESTROYED = "the CPU device was destroyed; request a new one";

/** @param {import("./heap.js").Heap} heap */
export function createCpu(heap) {
  /** @type {Map<number, CpuMachine>} */
  const machines = new Map();
  let nextHandle = 1;

  /** @param {number} handle */
  function find(handle) {
    const machine = machines.get(handle);
    if (!machine || machine.lost) throw new BridgeFault("lost", machine?.lost ?? DESTROYED);
    return machine;
  }

  /** Nobody waits for what will not come. @type {(machine: CpuMachine, why: string) => void} */
  function fail(machine, why) {
    machine.lost ??= why;
    for (const worker of machine.workers) worker.terminate();
    for (const { reject } of machine.jobs.splice(0)) reject?.(new BridgeFault("lost", machine.lost));
  }

  /** @type {(at: number, rows: number, columns: number) => number[][]} */
  const rowsOf = (at, rows, columns) => Array.from({ length: rows }, (_, row) => (
    [...new Uint32Array(heap.buffer(), at + 4 * columns * row, columns)]
  ));

  // What a job consists of ----------------------------------------------------------------------------

  /** Python keeps the data no longer than this call. @type {(machine: CpuMachine, at: number, count: number, isNow: boolean) => CpuRun} */
  function writing({ memory }, at, count, isNow) {
    const writes = rowsOf(at, count, WRITE_COLUMNS).map(([address, source, bytes]) => {
      const data = source ? new Uint8Array(heap.buffer(), source, bytes) : null;
      return { address, bytes, data: isNow ? data : data && data.slice() };
    });
    return () => {
      for (const { address, bytes, data } of writes) {
        if (data) new Uint8Array(memory.buffer, address, bytes).set(data);
        else new BigUint64Array(memory.buffer, address, bytes / 8).fill(0n); // bytes one by one take twice as long
      }
      return true;
    };
  }

  /** @type {(machine: CpuMachine, steps: number, counts: number, last: number, repeat: number) => CpuRun} */
  function replaying({ exports }, steps, counts, last, repeat) {
    let [round, at] = [0, 0];
    return (deadline) => {
      while (round < repeat) {
        at = replay(exports, steps, counts, at, last, deadline);
        if (at < last) return false;
        [round, at] = [round + 1, 0];
        if (performance.now() > deadline) break;
      }
      return round === repeat;
    };
  }

  /** @type {(machine: CpuMachine, at: number, count: number) => CpuRun} */
  function reading({ memory }, at, count) {
    const reads = rowsOf(at, count, READ_COLUMNS);
    return () => {
      for (const [address, target, bytes] of reads) {
        new Uint8Array(heap.buffer(), target, bytes).set(new Uint8Array(memory.buffer, address, bytes));
      }
      return true;
    };
  }

  /** @type {(machine: CpuMachine, steps: number, counts: number, last: number, times: number) => CpuRun} */
  function timing({ exports }, steps, counts, last, times) {
    let at = 0;
    return (deadline) => {
      for (; at < last && performance.now() < deadline; at++) {
        const started = performance.now();
        replay(exports, steps, counts, at, at + 1, Infinity);
        new Float64Array(heap.buffer(), times, last)[at] = 1e6 * (performance.now() - started);
      }
      return at === last;
    };
  }

  // Jobs, one after the other -------------------------------------------------------------------------

  /** @type {(machine: CpuMachine, job: CpuJob) => void} */
  function queue(machine, job) {
    if (machine.jobs.push(job) === 1) machine.turns.postMessage(null);
  }

  /** One turn of the event loop. @param {CpuMachine} machine */
  function work(machine) {
    machine.pause = machine.pause ? machine.pause - 1 : TURNS_BETWEEN;
    if (machine.pause === TURNS_BETWEEN) slice(machine);
    if (machine.jobs.length) machine.turns.postMessage(null);
    else machine.pause = 0;
  }

  /** @param {CpuMachine} machine */
  function slice(machine) {
    const deadline = performance.now() + SLICE_MILLISECONDS;
    try {
      while (machine.jobs.length && performance.now() < deadline) {
        const { runs, resolve } = machine.jobs[0];
        while (runs.length && runs[0](deadline)) runs.shift();
        if (runs.length) break;
        machine.jobs.shift();
        resolve?.();
      }
    } catch (error) { // a trap in a kernel, or a thread that is gone
      fail(machine, `the CPU's kernels have failed: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** What is left of a job, of which Python's data are taken. @type {(machine: CpuMachine, ...given: CpuSubmitted) => CpuRun[]} */
  function begin(machine, writesAt, writeCount, steps, counts, last, repeat) {
    const isIdle = !machine.jobs.length;
    const write = writing(machine, writesAt, writeCount, isIdle);
    const runs = repeat ? [replaying(machine, steps, counts, last, repeat)] : [];
    if (!isIdle) return [write, ...runs];
    write(0);
    return runs;
  }

  /** @type {CpuCalls} */
  const calls = {
    async open(modulesAt, moduleCount, pages, maxPages) {
      const codes = rowsOf(modulesAt, moduleCount, MODULE_COLUMNS).map(([at, bytes]) => new Uint8Array(heap.buffer(), at, bytes).slice());
      const code = codes.find((bytes) => WebAssembly.validate(bytes));
      if (!code) throw new BridgeFault("unavailable", "this browser's WebAssembly has no vectors or no threads");
      const module = await WebAssembly.compile(code);
      const memory = orTooLarge(() => new WebAssembly.Memory({ initial: pages, maximum: maxPages, shared: true }));
      const { exports } = await WebAssembly.instantiate(module, { env: { memory }, host: { now: () => performance.now() } });
      const { port1, port2 } = new MessageChannel();
      /** @type {CpuMachine} */
      const machine = { module, memory, exports: /** @type {any} */ (exports), workers: [], jobs: [], turns: port2, pause: 0, lost: null };
      port1.onmessage = () => work(machine);
      machines.set(nextHandle, machine);
      return nextHandle++;
    },
    close(handle) {
      const machine = machines.get(handle);
      if (!machine) return;
      fail(machine, DESTROYED);
      machine.turns.close();
      machines.delete(handle);
    },
    heapBase: (handle) => find(handle).exports.__heap_base.value,
    call: (handle, name, ...numbers) => (find(handle).exports[name](...numbers) ?? 0) >>> 0,
    grow(handle, pages) {
      const { memory } = find(handle);
      orTooLarge(() => memory.grow(pages));
    },
    startThread(handle, thread, stack) {
      const machine = find(handle);
      const { module, memory, workers } = machine;
      const worker = startWorker(new URL("./cpu_worker.js", import.meta.url), { type: "module", name: `CPU thread ${thread}` });
      let isWorking = false;
      worker.addEventListener("message", () => { isWorking = true; });
      worker.addEventListener("error", (event) => {
        event.preventDefault();
        if (isWorking) fail(machine, `a thread of the CPU's kernels has failed: ${event.message}`);
        else console.warn(`inpage computes with a thread less: ${event.message ?? "its script could not be loaded or run"}`);
      });
      worker.postMessage({ module, memory, thread, stack });
      workers.push(worker);
    },
    submit(handle, ...given) {
      const machine = find(handle);
      const runs = begin(machine, ...given);
      if (runs.length) queue(machine, { runs });
    },
    async submitAndRead(handle, readsAt, readCount, ...given) {
      const machine = find(handle);
      const runs = begin(machine, ...given);
      const read = reading(machine, readsAt, readCount);
      if (runs.length) await new Promise((resolve, reject) => { queue(machine, { runs: [...runs, read], resolve, reject }); });
      else read(0);
    },
    timeSteps(handle, steps, counts, last, timesAt) {
      const machine = find(handle);
      return new Promise((resolve, reject) => {
        queue(machine, { runs: [timing(machine, steps, counts, last, timesAt)], resolve, reject });
      });
    },
  };
  return { machines, calls };
}

/** @type {(exports: CpuExports, steps: number, counts: number, first: number, last: number, deadline: number) => number} */
function replay(exports, steps, counts, first, last, deadline) {
  const at = exports.replay(steps, counts, first, last, deadline);
  if (at === LOST) throw new Error("a thread has ended while it computed");
  return at;
}

/** @type {<Value>(allocate: () => Value) => Value} */
function orTooLarge(allocate) {
  try {
    return allocate();
  } catch (error) {
    throw new BridgeFault("out-of-memory", /** @type {Error} */ (error).message);
  }
}
