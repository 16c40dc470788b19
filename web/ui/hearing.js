// Hears other tabs, and of what they wrote: for those who have some.

import { channel } from "./chat_store.js";

channel.onmessage = ({ data }) => import("./tabs.js").then(({ hear }) => hear(data), () => {});
addEventListener("chatmerged", () => import("./tabs.js").then(({ refresh }) => refresh()));
