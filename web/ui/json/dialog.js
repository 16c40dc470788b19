// The dialog about answers in JSON: whether a chat's answers are, and the schema that they follow. What the engine does not
// support of a schema is said beside it, and such a schema is not taken.

import { formatOf } from "../answers.js";
import { setInChat } from "../chat_storage.js";
import { shown } from "../chats.js";
import { page, styleSheet } from "../elements.js";
import { faultyLine } from "./line.js";
import { faultOf, t } from "../wording.js";

const { checkJson, json: dialog, jsonExamples, jsonFault, jsonForm, jsonSchema: field, jsonSound: state, jsonTools, useJson } = page;
const loadStyles = styleSheet("json.css");

/** The schemas to begin with, by the names of their buttons. @type {Record<string, string>} */
const EXAMPLES = {
  mood: `{
  "type": "object",
  "properties": {
    "mood": { "enum": ["positive", "neutral", "negative"] },
    "reason": { "type": "string" }
  },
  "required": ["mood", "reason"]
}`,
  tasks: `{
  "type": "object",
  "properties": {
    "tasks": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "task": { "type": "string" },
          "minutes": { "type": "integer", "minimum": 1 },
          "urgent": { "type": "boolean" }
        },
        "required": ["task", "minutes"]
      }
    }
  },
  "required": ["tasks"]
}`,
};

/** Fills the dialog in before it is shown. */
export async function prepare() {
  await loadStyles().catch(() => {}); // plain, it can be used
  useJson.checked = shown.json.isOn;
  field.value = shown.json.schema;
  tell();
  showTools();
}

/** Says beside the field what is wrong with the schema, or how far its check is. */
function tell(fault = "", words = "", isWaiting = false) {
  jsonFault.textContent = fault;
  field.ariaInvalid = String(!!fault);
  state.textContent = words;
  state.toggleAttribute("data-waits", isWaiting);
}

/** Says that a chat has tools or answers in JSON, not both. @param {boolean} [wasOn] tools, which were switched off just now */
function showTools(wasOn = false) {
  jsonTools.hidden = !shown.tools.isOn && !wasOn;
  jsonTools.textContent = wasOn ? t`Tools are now off in this chat: a model cannot use tools while it answers in JSON.`
    : t`Tools are on in this chat. Turning on JSON turns them off: a model cannot use tools while it answers in JSON.`;
}

/**
 * Gives what is wrong with a schema, in words; nothing where the engine supports it.
 * @param {string} text
 * @returns {Promise<string>}
 */
async function faultIn(text) {
  try {
    const schema = JSON.parse(text || "{}");
    if (typeof schema !== "object" || !schema || Array.isArray(schema)) return t`A JSON schema is an object: it begins with “{” and ends with “}”.`;
  } catch {
    return t`This is not valid JSON: look at line ${faultyLine(text)}.`;
  }
  /** @type {{ place: string, reason?: string, facts: {}, message: string } | null} */
  const fault = await inpage.call("check_format", formatOf(text));
  return fault ? [fault.place, faultOf(fault)].filter(Boolean).join(": ") : "";
}

/** Takes what stands in the dialog, where it can be; whether it could. */
async function take() {
  const [chat, isOn, text] = [shown, useJson.checked, field.value.trimEnd()];
  if (!isOn && shown.json.isOn) setInChat("json", { ...shown.json, isOn }); // whatever the schema is by now
  tell("", t`Checking…`, true);
  const fault = await faultIn(text).catch(faultOf);
  if (chat !== shown || isOn !== useJson.checked || text !== field.value.trimEnd()) return false; // it was changed meanwhile
  tell(fault, fault || !text ? "" : t`This schema is supported.`);
  if (fault) return false;
  if (isOn !== shown.json.isOn || text !== shown.json.schema) setInChat("json", { isOn, schema: text });
  if (isOn && shown.tools.isOn) {
    setInChat("tools", { ...shown.tools, isOn: false });
    showTools(true);
  }
  return true;
}

checkJson.onclick = take;
useJson.onchange = take;
field.onchange = take;
field.oninput = () => {
  tell();
  if (field.value.trimEnd() && !shown.json.schema) useJson.checked = true; // who brings a schema wants answers by it
};
for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (jsonExamples.querySelectorAll("[data-schema]"))) {
  button.onclick = () => {
    field.value = EXAMPLES[button.dataset.schema ?? ""];
    useJson.checked = true;
    field.focus();
    field.setSelectionRange(0, 0);
    take();
  };
}
jsonForm.onsubmit = async (/** @type {SubmitEvent} */ event) => {
  if (/** @type {HTMLButtonElement | null} */ (event.submitter)?.formNoValidate) return;
  event.preventDefault();
  if (await take()) dialog.close();
  else field.focus();
};
