// The layout of a token's block as split_planes.wgsl leaves it: vectors that lie `tokens` apart.
// needs: nothing

const VECTORS = 5u;
const FACTS = 4u;  // the vector of its scale and the sums of its first and second 16 columns
