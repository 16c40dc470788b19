// The page's service worker: it keeps the page for times without network, and gives it the headers that isolate it on
// hosts that cannot send them. Also tells when the site has a newer page.

import { page } from "./elements.js";

const LOOK_MILLISECONDS = 3_600_000; // between looks at the site
const RELOADED = "inpage-isolation-reloaded";
const RELOAD_MILLISECONDS = 60_000; // between reloads that isolate the page

const SERVICE_WORKER = new URL("../sw.js", import.meta.url);

/** @param {string} url */
const releaseAt = async (url) => (await (await fetch(url, { cache: "no-cache" })).json()).release;

/** @type {string} */
let own; // the release that this tab began with
let looked = 0;

/** Has the page kept, and looks for a newer one from then on. */
export async function keepOffline() {
  if (!("serviceWorker" in navigator)) return; // a private window, or a policy
  own = await releaseAt("site.json");
  const registration = await navigator.serviceWorker.register(SERVICE_WORKER, { updateViaCache: "none" });
  navigator.serviceWorker.addEventListener("message", ({ data }) => {
    if (data.kept) document.body.dataset.kept = data.kept;
  });
  if (!registration) return; // it is blocked
  await askToKeep();
  addEventListener("visibilitychange", look);
  setInterval(look, LOOK_MILLISECONDS);
}

async function askToKeep() {
  const { active } = await navigator.serviceWorker.ready;
  while (inpage.loads) await new Promise((resolve) => { setTimeout(resolve, 99); }); // models come first
  active?.postMessage("keep");
}

/** Offers what the site has by now; the user decides when. */
async function look() {
  if (document.hidden || Date.now() - looked < LOOK_MILLISECONDS / 60) return;
  looked = Date.now();
  const newest = await releaseAt("site.json?newest").catch(() => own);
  if (newest === own) return;
  await askToKeep();
  page.newVersion.hidden = false;
}

page.reloadPage.onclick = () => location.reload();
page.laterPage.onclick = () => { page.newVersion.hidden = true; };

// ---- isolation

/** Isolates the page where it is not; says whether it now loads anew, through the service worker; else it stays as it is. */
export async function reloadsIsolated() {
  try {
    const isTried = Date.now() - Number(sessionStorage.getItem(RELOADED)) < RELOAD_MILLISECONDS;
    // One reload only: where it did not help, another would not either.
    if ("serviceWorker" in navigator && !isTried) {
      await navigator.serviceWorker.register(SERVICE_WORKER);
      await navigator.serviceWorker.ready;
      sessionStorage.setItem(RELOADED, String(Date.now()));
      location.reload();
      return true;
    }
  } catch { /* storage or service workers are switched off (a private window, a policy) */ }
  return false;
}
