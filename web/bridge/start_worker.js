/**
 * Starts a module as a worker. Of another origin none starts, but one from here may import it.
 * @type {(url: string | URL, options: WorkerOptions) => Worker}
 */
export function startWorker(url, options) {
  if (new URL(url).origin === location.origin) return new Worker(url, options);
  const script = new Blob([`import ${JSON.stringify(url)};`], { type: "text/javascript" });
  const blobURL = URL.createObjectURL(script);
  const worker = new Worker(blobURL, options);
  worker.addEventListener("message", () => URL.revokeObjectURL(blobURL), { once: true }); // it has begun
  return worker;
}
