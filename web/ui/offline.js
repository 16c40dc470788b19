// Keeps the page for times without network, and tells when the site has a newer one.

import { page } from "./page.js";

const AGAIN_MILLISECONDS = 3_600_000; // between looks at the site

/** @param {string} url */
const releaseAt = async (url) => (await (await fetch(url, { cache: "no-cache" })).json()).release;

/** @type {string} */
let own; // the release that this tab began with
let looked = 0;

export async function keepOffline() {
  if (!("serviceWorker" in navigator)) return; // a private window, or a policy
  own = await releaseAt("site.json");
  const registration = await navigator.serviceWorker.register(new URL("../sw.js", import.meta.url), { updateViaCache: "none" });
  navigator.serviceWorker.addEventListener("message", ({ data }) => {
    if (data.kept) document.body.dataset.kept = data.kept;
  });
  if (!registration) return; // it is blocked
  await askToKeep();
  addEventListener("visibilitychange", look);
  setInterval(look, AGAIN_MILLISECONDS);
}

async function askToKeep() {
  const { active } = await navigator.serviceWorker.ready;
  while (inpage.loads) await new Promise((resolve) => { setTimeout(resolve, 99); }); // models come first
  active?.postMessage("keep");
}

/** Offers what the site has by now; the user decides when. */
async function look() {
  if (document.hidden || Date.now() - looked < AGAIN_MILLISECONDS / 60) return;
  looked = Date.now();
  const newest = await releaseAt("site.json?newest").catch(() => own);
  if (newest === own) return;
  await askToKeep();
  page.newVersion.hidden = false;
}

page.reloadPage.onclick = () => location.reload();
page.laterPage.onclick = () => { page.newVersion.hidden = true; };
