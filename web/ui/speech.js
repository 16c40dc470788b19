// Reading aloud and dictation. Voices are of this machine. So is the recogniser of speech, where the browser has one; others send
// what is said to the browser's maker, which the user is asked about before.

import { mainTextOf, page } from "./elements.js";
import { script } from "./lazy.js";
import { arrived, notify } from "./notices.js";
import { keep, recall } from "./settings/settings.js";
import { t } from "./wording.js";

const { dictate, dictateAsk, draft, messages } = page;
const synthesis = globalThis.speechSynthesis;
const loadActions = script(() => import("./message_actions.js"));

const voices = () => synthesis?.getVoices().filter(({ localService }) => localService) ?? [];
const showVoices = () => document.body.toggleAttribute("data-speaks", voices().length > 0);

// ---- reading aloud

messages.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest('[data-does="speak"]');
  if (button) speak(button);
});
synthesis?.addEventListener("voiceschanged", showVoices);
if (synthesis) showVoices();

/** @type {Element | undefined} */
let reading; // the button of the answer that is being read

/** Reads an answer aloud, or stops that. @param {Element} button */
async function speak(button) {
  const wasReading = reading === button;
  synthesis.cancel();
  const actions = wasReading ? undefined : await arrived(loadActions());
  if (!actions) return;
  const text = mainTextOf(/** @type {Element} */ (button.closest("article")));
  const said = new SpeechSynthesisUtterance(actions.plainTextOf(text));
  const language = navigator.language.split("-")[0];
  said.voice = voices().find(({ lang }) => lang.startsWith(language)) ?? voices()[0];
  said.onend = said.onerror = () => {
    button.ariaPressed = "false";
    if (reading === button) reading = undefined;
  };
  button.ariaPressed = "true";
  reading = button;
  synthesis.speak(said);
}

// ---- dictation

const CONSENT = "inpageDictation";

/** @type {any} not in every list of types yet */
const Recognition = /** @type {any} */ (globalThis).SpeechRecognition ?? /** @type {any} */ (globalThis).webkitSpeechRecognition;
const wanted = { langs: [navigator.language], processLocally: true };
/** @type {any} */
let recognition; // what listens

// Whether it works on this machine is asked when somebody dictates: in some browsers the question crashes the tab.
dictate.hidden = !Recognition;
dictate.onclick = toggleDictation;

/** Begins or ends dictation. */
async function toggleDictation() {
  if (dictate.ariaPressed === "true") return recognition.stop();
  const processLocally = await canRecognise();
  if (!processLocally && !await maySendAway()) return;
  recognition = recogniser(processLocally);
  recognition.start();
}

/** Whether speech can be recognised on this machine; fetches the language, where the browser can. */
async function canRecognise() {
  if (!Recognition.available) return false; // an older browser, whose maker does it
  const found = await Recognition.available(wanted).catch(() => "unavailable");
  return found === "available" || (found !== "unavailable" && await Recognition.install(wanted).catch(() => false));
}

/** Asks, once, whether the browser may send what is said to its maker. */
async function maySendAway() {
  if (recall(CONSENT)) return true;
  dictateAsk.returnValue = "";
  dictateAsk.showModal();
  await new Promise((resolve) => { dictateAsk.onclose = resolve; });
  const isAllowed = dictateAsk.returnValue === "allow";
  if (isAllowed) keep(CONSENT, "allowed");
  return isAllowed;
}

/** @param {boolean} processLocally */
function recogniser(processLocally) {
  const made = Object.assign(new Recognition(), { lang: navigator.language, continuous: true, processLocally });
  made.onstart = () => { dictate.ariaPressed = "true"; };
  made.onend = () => { dictate.ariaPressed = "false"; };
  made.onerror = (/** @type {any} */ { error }) => { if (!/^(?:aborted|no-speech)$/.test(error)) notify(t`Dictation did not work: the browser says “${error}”.`); };
  made.onresult = (/** @type {any} */ { results, resultIndex }) => {
    const heard = [...results].slice(resultIndex).filter(({ isFinal }) => isFinal).map(([{ transcript }]) => transcript.trim()).join(" ");
    if (!heard) return;
    draft.value = [draft.value.trimEnd(), heard].filter(Boolean).join(" ");
    draft.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return made;
}
