// The shares of a workgroup's invocations in the positions of a split.
// needs: nothing

const TEAM = 4u;  // invocations that share a position
const STEP = 64u;  // positions of which splits are a multiple
const MAX_QUADS = 64u;  // the largest width of a head / 4
