// The tile of a matrix that a workgroup takes in kernels of one token and weights in blocks of 32 columns, and
// how its invocations share it out.
// needs: nothing

override WORKGROUP: u32 = 256u;
const ADJACENT = 8u;
override GROUP_PAIRS: u32 = 16u;
override UNROLL: u32 = 1u;  // blocks that an invocation loads at once, while it multiplies the ones before
override TILE: u32 = 64u;  // blocks of x at once: a multiple of UNROLL * PAIR_LANES, at least WORKGROUP / 4
override PAIR_LANES: u32 = WORKGROUP / GROUP_PAIRS;  // invocations that share a pair of rows
override OCTETS: u32 = (4u * TILE + WORKGROUP - 1u) / WORKGROUP;  // octets of a tile that an invocation lays out
