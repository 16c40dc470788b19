// One workgroup reads all logits, so that the largest is the quickest.
// needs: nothing
const WORKGROUP = 1024u;
const AT_ONCE = 8u;
