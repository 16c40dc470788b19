// Sparse autoencoders among the files that are dropped, told from models by the names of their tensors.

const MAX_HEADER_BYTES = 16 << 20;
const MAX_DIRECTORY_BYTES = 64 << 10; // of an .npz file, at its end
const WEIGHTS = /\.(safetensors|npz)$/i;
const OTHER = /\.(gguf|pte|ptd)$|^adapter_config\.json$/i;

/** Whether files are a sparse autoencoder with, perhaps, its configuration. @param {File[]} files */
export async function areAutoencoder(files) {
  const weights = files.filter(({ name }) => WEIGHTS.test(name));
  if (weights.length !== 1 || files.some(({ name }) => OTHER.test(name))) return false;
  return (await tensorsOf(weights[0])).some((name) => name.toLowerCase() === "w_dec");
}

/** The names of a file's tensors; none where it is not as it should be, which the engine tells. @param {File} file */
async function tensorsOf(file) {
  try {
    if (/\.npz$/i.test(file.name)) {
      const directory = await file.slice(-MAX_DIRECTORY_BYTES).text();
      return directory.toLowerCase().includes("w_dec.npy") ? ["w_dec"] : [];
    }
    const length = new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true);
    if (length > MAX_HEADER_BYTES) return [];
    return Object.keys(JSON.parse(await file.slice(8, 8 + Number(length)).text()));
  } catch {
    return [];
  }
}
