// Previews of pages that answers hold, and diagrams: shown and drawn in frames (preview.html) whose origin is nobody's and whose policy
// lets them connect to nothing. Where the browser gives such frames a process of their own, as Chromium does on computers, a script
// without end keeps nothing else waiting; closing its preview ends it.

import { isInUse } from "../elements.js";
import { emit } from "../events.js";
import { lazy, siteFacts } from "../lazy.js";
import { faultOf, t } from "../wording.js";

/** Milliseconds: until a frame is there, until one that is there has answered, for a library in it, and for a diagram. Tests have less. */
export const patience = { frame: 20_000, answer: 2000, library: 20_000, diagram: 5000 };

/**
 * Puts a document into a frame, once that is there; its port is for our own documents alone.
 * @type {(place: Element, html: string, port?: MessagePort) => Promise<HTMLIFrameElement>}
 */
async function framed(place, html, port) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("credentialless", "");
  frame.src = new URL("../../preview.html", import.meta.url).href;
  const { promise, resolve, reject } = Promise.withResolvers();
  const heard = new AbortController();
  addEventListener("message", ({ source, data }) => { if (source === frame.contentWindow && data === "preview") resolve(undefined); }, heard);
  const fault = new Error(t`The preview did not arrive: check the connection to this site.`);
  const late = setTimeout(reject, patience.frame, fault);
  frame.onload = () => setTimeout(reject, patience.answer, fault); // else it is the browser's own page about a fault
  place.replaceChildren(frame);
  await promise.finally(() => {
    clearTimeout(late);
    heard.abort();
  });
  frame.contentWindow?.postMessage({ html }, "*", port ? [port] : []);
  return frame;
}

// ---- previews

const AROUND_SVG = "<!doctype html><style>body { display: grid; place-items: center; min-height: 100vh; margin: 0 } svg { max-width: 100vw; max-height: 100vh }</style>";

/** Shows the page or picture of a block below it, or closes that. @param {Element} pressed */
export async function togglePreview(pressed) {
  const block = /** @type {HTMLElement} */ (pressed.closest("pre"));
  const next = block.nextElementSibling;
  const isShown = next?.classList.contains("preview") ?? false;
  pressed.textContent = isShown ? t`Preview` : t`Close preview`;
  if (isShown) return next?.remove();
  const box = Object.assign(document.createElement("div"), { className: "preview" });
  block.after(box);
  const text = block.querySelector("code")?.textContent ?? "";
  try {
    const frame = await framed(box, block.dataset.language?.toLowerCase() === "svg" ? AROUND_SVG + text : text);
    frame.title = t`Preview`;
  } catch (error) {
    box.replaceChildren(Object.assign(document.createElement("p"), { role: "alert", textContent: faultOf(error) }));
  }
  emit("textdrawn");
}

// ---- diagrams, by mermaid in a frame that is not seen; shown as pictures, in which nothing can run

const MAX_DIAGRAM = 20_000; // characters
const MAX_PICTURE = 1_000_000; // characters of SVG
const MAX_REMEMBERED = 50; // pictures: text that grows is shown again and again
const SIZE = /viewBox="[-\d.e]+ [-\d.e]+ ([\d.]+) ([\d.]+)"/;

/** @type {Map<string, string | null>} */
const pictures = new Map(); // of texts; null for what is no diagram; the newest are last
/** @type {Promise<unknown>} */
let queue = Promise.resolve(); // one after the other
/** @type {Promise<{ port: MessagePort, end: () => void }> | undefined} */
let drawer;

const loadMermaid = lazy(async () => {
  const { vendor } = await siteFacts();
  const response = await fetch(new URL(`../../${vendor}mermaid.js`, import.meta.url));
  if (!response.ok) throw new Error(`mermaid.js: ${response.status}`);
  return (await response.text()).replaceAll("</script", "<\\/script");
});

/** Draws a block of mermaid's language in its place, or says there that it cannot be drawn. @param {HTMLElement} code */
export async function drawDiagram(code) {
  const block = /** @type {HTMLElement} */ (code.parentElement);
  const text = code.textContent;
  if (!pictures.has(text)) {
    const mine = queue.then(() => (isInUse(code) && !pictures.has(text) ? render(text) : undefined));
    queue = mine.catch(() => {});
    await mine;
  }
  const picture = pictures.get(text);
  if (picture) show(block, picture);
  else if (picture === null) block.dataset.fault = t`cannot be drawn`;
}

/** Has a text drawn; rejects where mermaid did not arrive, so that the next one fetches it again. @param {string} text */
async function render(text) {
  if (text.length > MAX_DIAGRAM) return remember(text, null);
  const { port, end } = await (drawer ??= startDrawer());
  const { promise, resolve } = Promise.withResolvers();
  const late = setTimeout(() => {
    end();
    resolve(null);
  }, patience.diagram);
  port.onmessage = ({ data: { svg = "" } }) => resolve(svg && svg.length <= MAX_PICTURE ? svg : null);
  port.postMessage(text);
  remember(text, /** @type {string | null} */ (await promise));
  clearTimeout(late);
}

/** @type {(text: string, picture: string | null) => void} */
function remember(text, picture) {
  pictures.set(text, picture);
  for (const oldest of pictures.keys()) if (pictures.size > MAX_REMEMBERED) pictures.delete(oldest);
}

async function startDrawer() {
  const place = Object.assign(document.createElement("div"), { className: "drawer", inert: true });
  document.body.append(place); // without a layout, nothing can be measured
  const { port1: port, port2 } = new MessageChannel();
  const end = () => {
    port.close();
    place.remove();
    drawer = undefined;
  };
  const { promise, resolve, reject } = Promise.withResolvers();
  const late = setTimeout(reject, patience.library, new Error("mermaid.js"));
  port.onmessage = resolve;
  try {
    const library = await loadMermaid();
    const frame = await framed(place, `<!doctype html><body><script>${library}</script><script>(${drawInFrame})()</script>`, port2);
    frame.title = t`Diagram`;
    await promise;
  } catch (error) {
    end();
    throw error;
  } finally {
    clearTimeout(late);
  }
  return { port, end };
}

/** Draws what comes through the port. It runs in the frame, and knows nothing of this script. */
function drawInFrame() {
  const { mermaid, port } = /** @type {any} */ (globalThis);
  mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: "neutral", htmlLabels: false, flowchart: { htmlLabels: false }, suppressErrorRendering: true, fontFamily: "system-ui, sans-serif" });
  let count = 0;
  port.onmessage = async (/** @type {MessageEvent<string>} */ { data: text }) => {
    try {
      const { svg } = await mermaid.render(`diagram${++count}`, text);
      const drawn = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
      port.postMessage({ svg: drawn ? new XMLSerializer().serializeToString(drawn) : "" }); // as XML: pictures are nothing else
    } catch {
      port.postMessage({ svg: "" });
    }
  };
  port.postMessage({});
}

/** @type {(block: HTMLElement, picture: string) => void} */
function show(block, picture) {
  const image = Object.assign(document.createElement("img"), { alt: t`Diagram`, src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture)}` });
  const [, width, height] = SIZE.exec(picture) ?? [];
  if (height) Object.assign(image, { width: Math.ceil(Number(width)), height: Math.ceil(Number(height)) });
  const box = Object.assign(document.createElement("div"), { className: "diagram" });
  box.append(image);
  const turn = Object.assign(document.createElement("button"), { type: "button", textContent: t`Source` });
  turn.onclick = () => {
    const isSource = block.dataset.shows === "source";
    block.dataset.shows = isSource ? "diagram" : "source";
    turn.textContent = isSource ? t`Source` : t`Diagram`;
  };
  block.querySelector("span")?.prepend(turn);
  block.append(box);
  block.dataset.shows = "diagram";
}
