// How a workgroup shares out the positions of a split.
// needs: nothing

const TEAM = 4u;  // invocations that share a position
const STEP = 64u;  // positions; splits are multiples of it
const MOST_QUADS = 64u;  // of a head's width: there is room for so many
