// Cross-origin isolation on hosts that cannot send headers: a service worker supplies them.

const RELOADED = "inpage-isolation-reloaded";

/** Whether the page now loads anew, through the service worker; else it stays as it is, isolated or not. */
export async function reloadsIsolated() {
  try {
    if (crossOriginIsolated) sessionStorage.removeItem(RELOADED);
    // One reload only: where it did not help, another would not either.
    else if ("serviceWorker" in navigator && !sessionStorage.getItem(RELOADED)) {
      await navigator.serviceWorker.register(new URL("isolation-sw.js", import.meta.url));
      await navigator.serviceWorker.ready;
      sessionStorage.setItem(RELOADED, "yes");
      location.reload();
      return true;
    }
  } catch { /* storage or service workers are switched off (a private window, a policy) */ }
  return false;
}
