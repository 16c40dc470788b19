// Counts what an engine in this page holds in GPU buffers. Imported before the engine.

let held = 0;
let most = 0;

const createBuffer = globalThis.GPUDevice?.prototype.createBuffer;
if (createBuffer) {
  GPUDevice.prototype.createBuffer = function (/** @type {GPUBufferDescriptor} */ descriptor) {
    const buffer = createBuffer.call(this, descriptor);
    held += buffer.size;
    most = Math.max(most, held);
    let destroyed = false;
    const destroy = buffer.destroy;
    buffer.destroy = function () {
      if (!destroyed) held -= buffer.size;
      destroyed = true;
      destroy.call(buffer);
    };
    return buffer;
  };
}

/** The most bytes held at one time. */
export const gpuBytes = () => most;
