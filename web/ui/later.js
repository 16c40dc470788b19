// What nobody needs in the first second: fetched once the page stands.

import "./chat_list.js";
import "./context.js";
import "./finding.js";
import "./latest.js";
import "./shortcuts.js";
import "./dropping.js";
import "./speech.js";
import { keepOffline } from "./offline.js";

inpage.ready.then(keepOffline).catch(() => {}); // an engine that did not start, a browser that keeps nothing
