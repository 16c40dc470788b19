// Whether the Hub may be asked: the user says, once, and can take it back. Nothing goes there before.

import { page } from "./page.js";

const KEY = "inpageHub";
/** @type {{ allowed: boolean, token: string | null, isKept: boolean }} */
let state = read(); // a token lasts as long as the page, unless it is to be kept
/** @type {Promise<boolean> | undefined} */
let asking;

function read() {
  try {
    const { allowed, token } = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    const isKept = typeof token === "string";
    return { allowed: allowed === true, token: isKept ? token : null, isKept };
  } catch {
    return { allowed: false, token: null, isKept: false };
  }
}

/** @param {Partial<typeof state>} changes */
function change(changes) {
  state = { ...state, ...changes };
  const { allowed, token, isKept } = state;
  try {
    if (allowed || isKept) localStorage.setItem(KEY, JSON.stringify({ allowed, ...(isKept && { token }) }));
    else localStorage.removeItem(KEY);
  } catch { /* switched off: it lasts as long as the page */ }
}

export const isAllowed = () => state.allowed;
export const hasKeptToken = () => state.isKept;

/**
 * @param {string} token none where it is empty
 * @param {boolean} isKept
 */
export const useToken = (token, isKept) => change({ token: token || null, isKept: isKept && token !== "" });

/** Withdraws it all, the token as well. */
export const askFirst = () => change({ allowed: false, token: null, isKept: false });

/** What the engine may ask with; asks the user where they have not said. Null: nothing. */
export async function permission() {
  if (!state.allowed) {
    asking ??= ask().finally(() => { asking = undefined; });
    if (!await asking) return null;
    change({ allowed: true });
  }
  return { token: state.token };
}

/** @returns {Promise<boolean>} */
async function ask() {
  const { hub } = await inpage.ready;
  if (!hub) return true; // the engine says that this site has none
  page.hubHost.textContent = new URL(hub).host;
  page.hubAsk.returnValue = "";
  page.hubAsk.showModal();
  return new Promise((resolve) => {
    page.hubAsk.addEventListener("close", () => resolve(page.hubAsk.returnValue === "allow"), { once: true });
  });
}
