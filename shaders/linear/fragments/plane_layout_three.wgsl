// The layout of a token's block with three planes: as plane_layout.wgsl has two, and two more vectors.
// needs: nothing

const VECTORS = 7u;
const FACTS = 4u;  // the vector of its scale and the sums of its first and second 16 columns
const FINE_FIRST = 5u;  // the third plane of its first 16 columns
const FINE_SECOND = 6u;
