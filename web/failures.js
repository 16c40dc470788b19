// What the page says when the engine cannot start or has died: what happened, why, and what to do.

const EXPLANATIONS = {
  "no-webgpu": {
    title: "This browser has no WebGPU",
    why: "inpage computes on your graphics processor through WebGPU, and this browser does not offer it to this page.",
    todo: [
      "Use a current Chrome or Edge (113 or newer), Safari 26 or newer, or Firefox 141 or newer.",
      "Open the page over https:// or from localhost: browsers hide WebGPU from insecure addresses.",
      "If your browser should have it, look for WebGPU in its settings or flags and switch it on.",
    ],
  },
  "no-adapter": {
    title: "No graphics processor is available",
    why: "The browser has WebGPU, but found no adapter to run it on: the graphics driver is missing, too old, or blocked.",
    todo: [
      "Update the graphics driver, then restart the browser.",
      "Switch on hardware acceleration in the browser's settings (System).",
      "In Chrome or Edge, the page chrome://gpu says why an adapter was refused.",
    ],
  },
  "no-device": {
    title: "The graphics processor refused to start",
    why: "An adapter was found, but it would not open a device for this page.",
    todo: ["Close other tabs that use the GPU, then reload.", "Restart the browser; update the graphics driver."],
  },
  crashed: {
    title: "The engine stopped",
    why: "The background worker that runs Python ended unexpectedly. Nothing you typed has left this machine.",
    todo: [
      "Reload the page to start it again.",
      "If it happens again, the memory of this device may not suffice: close other tabs first.",
    ],
  },
  "start-failed": {
    title: "Python could not be loaded",
    why: "The Python interpreter (Pyodide) or one of its files did not arrive whole from this site.",
    todo: [
      "Check the connection to this site, then reload.",
      "If you run the server yourself: run “make setup” again, it verifies every file.",
    ],
  },
};

EXPLANATIONS.gpu_unavailable = EXPLANATIONS["no-device"]; // the same refusal, met from Python

/** Builds the explanation as DOM nodes; `failure` is an EngineFailure. */
export function describeFailure(failure) {
  const { title, why, todo } = EXPLANATIONS[failure.kind] ?? EXPLANATIONS["start-failed"];
  const heading = element("h2", title);
  const list = element("ul");
  list.append(...todo.map((step) => element("li", step)));
  const details = element("details");
  const where = failure.phase ? `While starting “${failure.phase}”: ` : "";
  details.append(element("summary", "Technical detail"), element("pre", `${where}${failure.message}`));
  const again = element("button", "Reload");
  again.type = "button";
  again.addEventListener("click", () => location.reload());
  return [heading, element("p", why), list, details, again];
}

function element(tag, text) {
  const node = document.createElement(tag);
  if (text) node.textContent = text;
  return node;
}
