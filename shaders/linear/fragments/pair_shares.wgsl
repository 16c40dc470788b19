// An invocation's shares of products with pairs of rows, for kernels of one token that take weights in blocks
// of 32 columns (gemv_int8.wgsl, gemv_f32.wgsl): which pair it has, and the reduction of all shares in the
// end.
// needs: linear/fragments/norm, token = linear/fragments/token_*, epilogue = linear/fragments/epilogue_*

override WORKGROUP: u32 = 256u;
const ADJACENT = 8u;
override GROUP_PAIRS: u32 = 16u;
override UNROLL: u32 = 1u;  // blocks that an invocation loads at once, while it multiplies the ones before
override TILE: u32 = 64u;  // blocks of x at once: a multiple of UNROLL * PAIR_LANES, at least WORKGROUP / 4
override PAIR_LANES: u32 = WORKGROUP / GROUP_PAIRS;  // invocations that share a pair of rows
override OCTETS: u32 = (4u * TILE + WORKGROUP - 1u) / WORKGROUP;  // octets of a tile that an invocation lays out
const ADDERS = 16u;  // invocations that reduce the squares

// An invocation's share of a pair's sums, and of the squares that the norm divides by.
struct Share {
  sums: vec2f,
  squares: f32,
}

var<workgroup> partials: array<vec2f, WORKGROUP>;
var<workgroup> octet_facts: array<vec2f, 4u * TILE>;  // of the octets of a tile; later squares

// First step of a reduction: a few invocations each add up a share of the squares.
fn add_up_squares(lane: u32) {
  if (lane >= ADDERS) {
    return;
  }
  var squares = 0.0;
  for (var at = lane; at < WORKGROUP; at += ADDERS) {
    squares += octet_facts[at].x;
  }
  octet_facts[lane].x = squares;
}

fn added_squares() -> f32 {
  var squares = 0.0;
  for (var at = 0u; at < ADDERS; at++) {
    squares += octet_facts[at].x;
  }
  return squares;
}

// Runs before the first column of x is read; `writes`: this workgroup stores x where it is a sum.
fn prepare_token(lane: u32, writes: bool) {
  if (!SUMMED) {
    return;
  }
  octet_facts[lane].x = token_squares(lane, WORKGROUP);
  workgroupBarrier();
  add_up_squares(lane);
  workgroupBarrier();
  begin_token(added_squares(), writes);
  workgroupBarrier();
}

// The invocation's pair, relative to the workgroup's first.
fn own_pair(lane: u32) -> u32 {
  return lane / ADJACENT % GROUP_PAIRS;
}

// The invocation's index among the PAIR_LANES.
fn own_member(lane: u32) -> u32 {
  return lane % ADJACENT + lane / (ADJACENT * GROUP_PAIRS) * ADJACENT;
}

fn store_shares(first_pair: u32, lane: u32, share: Share) {
  partials[lane] = share.sums;
  octet_facts[lane].x = share.squares;
  workgroupBarrier();
  if (NORMED) {
    add_up_squares(lane);
  }
  workgroupBarrier();
  if (lane >= GROUP_PAIRS || first_pair + lane >= params.pairs) {
    return;
  }
  var sums = vec2f();
  for (var slice = 0u; slice < PAIR_LANES / ADJACENT; slice++) {
    for (var at = 0u; at < ADJACENT; at++) {
      sums += partials[(slice * GROUP_PAIRS + lane) * ADJACENT + at];
    }
  }
  store_pair(0u, first_pair + lane, norm_scale(added_squares()) * sums);
}
