// Keeps the page, Python and libraries by their hashes, so that it starts without the network; and gives documents
// and workers the headers that a plain file host does not send (see ui/service_worker.js).
//
// site.json lists every file with its hash: that is a release. Each tab has the one it began with until it is loaded
// again, whatever the site has by then. A navigation asks the site first, so that a reload shows what is there now.

/** @typedef {import("./calls.d.ts").Site} Site */

const FRAMES = new Set(["connector.html", "preview.html", "runner.html"]);
const CACHE = "inpage";
const PATIENCE_MILLISECONDS = 4000; // for the site's answer, where something is kept
const AT_ONCE = 4;
// Headers matter only for requests with these destinations.
const CONTEXTS = new Set(["document", "iframe", "worker", "sharedworker"]);
// Their URLs carry a hash, and the browser's own cache also keeps their machine code: it is asked first.
const UNCHANGING = /^(?:pyodide|vendor|assets|snapshots)\//;

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));

worker.addEventListener("install", () => worker.skipWaiting()); // tabs keep their releases, whoever serves them
// Nothing waits for it: Firefox asks each worker of a page, and threads that compute (bridge/cpu_worker.js) answer nobody.
worker.addEventListener("activate", () => { worker.clients.claim().catch(() => {}); });

worker.addEventListener("message", (event) => {
  if (event.data !== "keep") return;
  // One after the other, whichever tab asks, also of a worker before this one: what one puts, another would forget.
  const keeping = navigator.locks.request(keyOf("?keeping"), keep);
  event.waitUntil(keeping.catch(() => "").then((release) => event.source?.postMessage({ kept: release })));
});

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { scope } = worker.registration;
  const [url] = request.url.split("#");
  const isOurs = request.method === "GET" && url.startsWith(scope) && !request.headers.has("range");
  const path = url.slice(scope.length) || "index.html";
  // The frames for code and pages of answers, and for servers of tools, have policies of their own. Weights pass by at full speed; what has a query wants to know what the site has now.
  if (!isOurs || path.startsWith("models/") || FRAMES.has(path) || (path.includes("?") && request.mode !== "navigate")) return;
  event.respondWith(answer(event, path.split("?")[0] || "index.html"));
});

/**
 * @param {FetchEvent} event
 * @param {string} path below the page's folder
 */
async function answer(event, path) {
  const { request } = event;
  const site = await siteOf(event).catch(() => undefined);
  if (!site) return fetch(request);
  if (path === "site.json") return Response.json(site);
  if (path === "models.json") return newest(request);
  const response = await fileOf(site, path, request);
  return CONTEXTS.has(request.destination) ? withHeaders(response, site) : response;
}

// Releases -----------------------------------------------------------------------------------------

/** @param {string} name */
const keyOf = (name) => `${worker.registration.scope}${name}`;

/** @param {string} id */
const clientKey = (id) => keyOf(`?client=${id}`);

/** The site's, as it is now. */
const fetchSite = async () => /** @type {Site} */ (await whole(await fetch(keyOf("site.json"), { cache: "no-cache" })).json());

/** @param {Response} response */
function whole(response) {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}`);
  return response;
}

/**
 * What is kept under this key.
 * @param {string} key
 * @returns {Promise<Site | undefined>}
 */
async function kept(key) {
  const found = await (await caches.open(CACHE)).match(key);
  return found?.json();
}

/**
 * If there is room: whoever asked for a file gets it all the same.
 * @param {string} key
 * @param {Response} response
 */
const store = (key, response) => caches.open(CACHE).then((cache) => cache.put(key, response)).catch(() => {});

/** What tabs began with: each of their files asks for it, and this worker lives briefly. @type {Map<string, Site>} */
const known = new Map();

/** @param {string} id a tab's, or a worker's of its */
async function beganWith(id) {
  const site = known.get(id) ?? await kept(clientKey(id));
  if (site) known.set(id, site);
  return site;
}

/**
 * A tab's release: a navigation begins with the newest that can be had.
 * @param {FetchEvent} event
 */
async function siteOf(event) {
  const { request, clientId, resultingClientId } = event;
  const site = request.mode === "navigate"
    ? await inTime(fetchSite(), () => kept(keyOf("site.json")))
    : await beganWith(clientId) ?? await kept(keyOf("site.json")) ?? await fetchSite();
  if (resultingClientId && site.files) {
    known.set(resultingClientId, site);
    event.waitUntil(store(clientKey(resultingClientId), Response.json(site)));
  }
  return site;
}

/**
 * What the network says, or else what is kept; a slow network only where nothing is.
 * @template Value
 * @param {Promise<Value>} asked
 * @param {() => Promise<Value | undefined>} find
 * @returns {Promise<Value>}
 */
async function inTime(asked, find) {
  const late = new Promise((resolve) => { setTimeout(resolve, PATIENCE_MILLISECONDS); });
  const first = await Promise.race([asked, late]).catch(() => undefined);
  return /** @type {Value | undefined} */ (first) ?? await find() ?? asked;
}

// Files --------------------------------------------------------------------------------------------

/**
 * @param {Site} site
 * @param {string} path
 * @param {Request} request
 */
async function fileOf(site, path, request) {
  const hash = site.files[path];
  if (!hash) return fetch(request);
  const find = async () => (await caches.open(CACHE)).match(fileKey(path, hash));
  if (UNCHANGING.test(path)) return inTime(fetch(request), find);
  const found = await find();
  if (found) return found;
  // As it is now, rather than as the browser's own cache has it.
  const fresh = await fetch(urlOf(path), { cache: "no-cache" });
  return fresh.ok ? await put(path, hash, fresh) : fresh;
}

/**
 * @param {string} path
 * @param {string} hash
 */
const fileKey = (path, hash) => keyOf(`${path}?sha256=${hash}`);

/**
 * Some hosts redirect from index.html, and a document must not be redirected.
 * @param {string} path
 */
const urlOf = (path) => keyOf(path === "index.html" ? "" : path);

/**
 * Keeps it if it is what the release has; gives it either way.
 * @param {string} path
 * @param {string} hash
 * @param {Response} response
 */
async function put(path, hash, response) {
  const bytes = await response.arrayBuffer();
  const headers = new Headers(response.headers);
  for (const name of ["content-encoding", "content-length"]) headers.delete(name); // they were of the way here
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const make = () => new Response(bytes, { headers });
  if (found === hash) await store(fileKey(path, hash), make());
  return make();
}

/** @param {Request} request */
async function newest(request) {
  const asked = fetch(request).then(whole).then(async (response) => {
    await store(request.url, response.clone());
    return response;
  });
  return inTime(asked, async () => (await caches.open(CACHE)).match(request.url));
}

/**
 * The site's as it is now, whatever it had when the file was kept.
 * @param {Response} response
 * @param {Site} site
 */
function withHeaders(response, site) {
  if (response.type === "opaqueredirect") return response; // which the browser follows itself
  const headers = { ...Object.fromEntries(response.headers), ...site.headers };
  const { body, status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}

// Keeping ------------------------------------------------------------------------------------------

/** The whole release that the site has now; until all of it is here, the one before stays. Gives its name. */
async function keep() {
  const site = await fetchSite();
  const cache = await caches.open(CACHE);
  const left = Object.entries(site.files);
  const some = async () => {
    for (let file = left.shift(); file; file = left.shift()) {
      const [path, hash] = file;
      if (!await cache.match(fileKey(path, hash))) await put(path, hash, whole(await fetch(urlOf(path), optionsFor(path))));
      if (!await cache.match(fileKey(path, hash))) throw new Error(`${path} is of another release, or there is no room for it`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, some));
  await newest(new Request(keyOf("models.json"))).catch(() => {});
  await cache.put(keyOf("site.json"), Response.json(site));
  await forget(cache);
  return site.release;
}

/**
 * @param {string} path
 * @returns {RequestInit}
 */
const optionsFor = (path) => ({ cache: UNCHANGING.test(path) ? "default" : "no-cache" });

/**
 * What belongs to no release that a tab has, nor to the one that is kept.
 * @param {Cache} cache
 */
async function forget(cache) {
  const late = new Promise((resolve) => { setTimeout(resolve, PATIENCE_MILLISECONDS); });
  /** @type {readonly Client[] | undefined} */
  const tabs = await Promise.race([worker.clients.matchAll({ includeUncontrolled: true, type: "all" }), late]);
  if (!tabs) return; // a thread that computes has not answered: another time
  const wanted = new Set([keyOf("site.json"), keyOf("models.json")]);
  for (const key of [keyOf("site.json"), ...tabs.map(({ id }) => clientKey(id))]) {
    wanted.add(key);
    for (const [path, hash] of Object.entries((await kept(key))?.files ?? {})) wanted.add(fileKey(path, hash));
  }
  for (const { url } of await cache.keys()) if (!wanted.has(url)) await cache.delete(url);
}
