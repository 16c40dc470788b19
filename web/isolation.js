// Cross-origin isolation on hosts that cannot send headers: a service worker supplies them.

const RELOADED = "inpage-isolation-reloaded";

/**
 * "isolated": the page is isolated, by its host or by the service worker.
 * "reloading": the service worker is in place and the page is loading anew through it.
 * "unavailable": the page stays as it is; it works, but not isolated.
 */
export async function ensureIsolation() {
  try {
    if (globalThis.crossOriginIsolated) {
      sessionStorage.removeItem(RELOADED);
      return "isolated";
    }
    // One reload only: where it did not help, another would not either.
    if (!("serviceWorker" in navigator) || sessionStorage.getItem(RELOADED)) return "unavailable";
    await navigator.serviceWorker.register(new URL("isolation-sw.js", import.meta.url));
    await navigator.serviceWorker.ready;
    sessionStorage.setItem(RELOADED, "yes");
    location.reload();
    return "reloading";
  } catch {
    // Storage or service workers are switched off (a private window, a policy of the browser).
    return globalThis.crossOriginIsolated ? "isolated" : "unavailable";
  }
}
