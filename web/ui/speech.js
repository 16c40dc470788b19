// Reading aloud and dictation, where the browser does them on this machine: other voices and recognisers would send words
// away.

import { mainTextOf, page } from "./elements.js";
import { script } from "./lazy.js";
import { arrived, notify } from "./notices.js";
import { t } from "./wording.js";

const { dictate, draft, messages } = page;
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

/** @type {any} not in every list of types yet */
const Recognition = /** @type {any} */ (globalThis).SpeechRecognition;
const wanted = { langs: [navigator.language], processLocally: true };
/** @type {any} */
let recognition; // made when somebody dictates for the first time

// Whether it really works is asked when somebody dictates: in some browsers the question crashes the tab.
dictate.hidden = !Recognition?.available;
dictate.onclick = toggleDictation;

/** Begins or ends dictation, or tells why there is none. */
async function toggleDictation() {
  if (dictate.ariaPressed === "true") recognition.stop();
  else if (await canRecognise()) (recognition ??= recogniser()).start();
  else notify(t`This browser does not recognise speech on this machine in your language, and inpage sends nothing you say elsewhere.`);
}

/** Fetches the language, where the browser can. */
async function canRecognise() {
  const found = await Recognition.available(wanted).catch(() => "unavailable");
  return found === "available" || (found !== "unavailable" && await Recognition.install(wanted).catch(() => false));
}

function recogniser() {
  const made = Object.assign(new Recognition(), { lang: navigator.language, continuous: true, processLocally: true });
  made.onstart = () => { dictate.ariaPressed = "true"; };
  made.onend = () => { dictate.ariaPressed = "false"; };
  made.onresult = (/** @type {any} */ { results, resultIndex }) => {
    const heard = [...results].slice(resultIndex).filter(({ isFinal }) => isFinal).map(([{ transcript }]) => transcript.trim()).join(" ");
    if (!heard) return;
    draft.value = [draft.value.trimEnd(), heard].filter(Boolean).join(" ");
    draft.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return made;
}
