// Gives documents and workers the headers that a plain file host does not send (see isolation.js).

const HEADERS = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy":
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    + "style-src 'self'; img-src 'self' data:; connect-src 'self'; object-src 'none'; "
    + "base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

// Only there do the headers mean anything. All else, weights above all, passes by at full speed.
const CONTEXTS = new Set(["document", "iframe", "worker", "sharedworker"]);

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const ours = new URL(request.url).origin === self.location.origin;
  if (!ours || request.method !== "GET" || request.headers.has("Range")) return;
  if (CONTEXTS.has(request.destination)) event.respondWith(withHeaders(event));
});

async function withHeaders(event) {
  const response = await fetch(event.request);
  if (response.type !== "basic") return response; // a redirect: the browser follows it itself
  const sent = response.headers;
  if (sent.has("Cross-Origin-Opener-Policy") && sent.has("Cross-Origin-Embedder-Policy")) {
    // The host has learnt to send them, so this worker is not needed any more.
    event.waitUntil(self.registration.unregister());
    return response;
  }
  const headers = new Headers(sent);
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
  const { body, status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}
