// A block of a token of x as split_planes.wgsl leaves it: vectors, which lie apart.
// needs: nothing

const VECTORS = 5u;
const FACTS = 4u;  // which of them is its scale and the sums of its first and second 16 columns
