// The panel behind the chip: what is in use, what else there is or can be had, and the machine. Fetched when somebody
// opens it.

import "./hub.js";
import "./machine.js";
import "./model_rows.js";
