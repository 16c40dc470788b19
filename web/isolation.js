// Cross-origin isolation on hosts that cannot send headers: a service worker supplies them. Fetched where it lacks.

const RELOADED = "inpage-isolation-reloaded";
const AGAIN_MILLISECONDS = 60_000;

/** Whether the page now loads anew, through the service worker; else it stays as it is. */
export async function reloadsIsolated() {
  try {
    const isTried = Date.now() - Number(sessionStorage.getItem(RELOADED)) < AGAIN_MILLISECONDS;
    // One reload only: where it did not help, another would not either.
    if ("serviceWorker" in navigator && !isTried) {
      await navigator.serviceWorker.register(new URL("sw.js", import.meta.url));
      await navigator.serviceWorker.ready;
      sessionStorage.setItem(RELOADED, String(Date.now()));
      location.reload();
      return true;
    }
  } catch { /* storage or service workers are switched off (a private window, a policy) */ }
  return false;
}
