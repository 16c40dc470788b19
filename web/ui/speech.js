// Reading aloud and dictation, where the browser does them on this machine: other voices and recognisers would send words
// away. speaking.js does them, once somebody wants one.

import { page } from "./elements.js";
import { script } from "./lazy.js";
import { arrived } from "./notices.js";

const { dictate, messages } = page;
const synthesis = globalThis.speechSynthesis;
const loadSpeaking = script(() => import("./speaking.js"));

const voices = () => synthesis?.getVoices().filter(({ localService }) => localService) ?? [];
const showVoices = () => document.body.toggleAttribute("data-speaks", voices().length > 0);

messages.addEventListener("click", async ({ target }) => {
  const button = /** @type {Element} */ (target).closest('[data-does="speak"]');
  if (button) (await arrived(loadSpeaking()))?.speak(button, voices());
});
synthesis?.addEventListener("voiceschanged", showVoices);
if (synthesis) showVoices();

// Whether it really works is asked when somebody dictates: in some browsers the question crashes the tab.
dictate.hidden = !(/** @type {any} */ (globalThis).SpeechRecognition?.available);
dictate.onclick = async () => (await arrived(loadSpeaking()))?.toggleDictation();
