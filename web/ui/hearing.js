// Hears other tabs, and of what they wrote: for those who have some.

import { channel } from "./chat_store.js";
import { lazy } from "./page.js";

const tabs = lazy(() => import("./tabs.js"));
channel.onmessage = ({ data }) => { tabs.hear(data); };
addEventListener("chatmerged", () => { tabs.refresh(); });
