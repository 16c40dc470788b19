// The worker in which pdf.js reads a file, with a bound on its memory: a few kilobytes can unpack to gigabytes, and
// what runs out of memory here takes the whole page with it.

const MAX_BYTES = 64 << 20; // of one part of a file, unpacked; pdf.js keeps each in one array, which it doubles as it grows

const Bytes = Uint8Array;
globalThis.Uint8Array = new Proxy(Bytes, {
  construct(target, given, made) {
    if (given[0] > MAX_BYTES) throw new RangeError("a part of the file is too large");
    return Reflect.construct(target, given, made === Uint8Array ? Bytes : made);
  },
});
Object.assign(globalThis, { DecompressionStream: undefined }); // which unpacks all there is; pdf.js does without

// Its name is the address of pdf.js, which says that it is ready: messages that come before are lost.
import(self.name).catch(() => postMessage({ isMissing: true }));
