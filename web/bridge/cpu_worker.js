// A thread of the CPU's pool: an instance of the kernels with a stack of its own, which helps whoever drives a replay.

addEventListener("message", ({ data: { module, memory, thread, stack } }) => {
  const host = { now: () => performance.now() };
  const { exports } = new WebAssembly.Instance(module, { env: { memory }, host });
  /** @type {import("../calls.d.ts").CpuExports} */
  const { __stack_pointer: stackPointer, work } = /** @type {any} */ (exports);
  stackPointer.value = stack;
  postMessage("working");
  work(thread); // until the pool is closed
  close();
});
