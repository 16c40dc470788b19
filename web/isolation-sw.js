// Gives documents and workers the headers that a plain file host does not send (see isolation.js).

// Only there do the headers mean anything. All else, weights above all, passes by at full speed.
const CONTEXTS = new Set(["document", "iframe", "worker", "sharedworker"]);

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener("fetch", (event) => {
  if (CONTEXTS.has(event.request.destination)) event.respondWith(withHeaders(event));
});

/** @param {FetchEvent} event */
async function withHeaders(event) {
  const response = await fetch(event.request);
  if (response.type !== "basic") return response; // a redirect, which the browser follows itself, or not ours
  const sent = response.headers;
  if (sent.has("Cross-Origin-Opener-Policy") && sent.has("Cross-Origin-Embedder-Policy")) {
    // The host has learnt to send them, so this worker is not needed any more.
    event.waitUntil(worker.registration.unregister());
    return response;
  }
  const site = await (await fetch("site.json")).json();
  const headers = { ...Object.fromEntries(sent), ...site.headers };
  const { body, status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}
