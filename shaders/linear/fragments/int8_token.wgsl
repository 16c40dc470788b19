// One token as three int8 planes in workgroup memory, for gemv_int8.wgsl: the part that does not depend on
// the kind of weights. It also reduces the invocations' sums in the end.
// needs: linear/fragments/norm, token = linear/fragments/token_*, linear/fragments/int8_planes, epilogue = linear/fragments/epilogue_*

override WORKGROUP: u32 = 256u;
const ADJACENT = 8u;
override GROUP_PAIRS: u32 = 16u;
override UNROLL: u32 = 1u;  // blocks that an invocation loads at once, while it multiplies the ones before
override TILE: u32 = 96u;  // blocks of x at once: a multiple of UNROLL * PAIR_LANES, at least WORKGROUP / 4
override PAIR_LANES: u32 = WORKGROUP / GROUP_PAIRS;  // invocations that share a pair of rows
override OCTETS: u32 = (4u * TILE + WORKGROUP - 1u) / WORKGROUP;  // octets of a tile that an invocation lays out
const MAX_OCTETS = 8u;
const MAX_UNROLL = 2u;
const ADDERS = 16u;  // invocations that reduce the squares

const FINE = 254.0;  // a unit of the third plane is this many times smaller than one of the low plane

// 32 columns of x. A vector has eight: the high bytes of the first four and of the others, then the low ones.
struct Columns {
  planes: array<vec4u, 4>,
  fine: array<vec2u, 4>,
  sums: vec2f,  // of the columns that share a scale of the weight
  scale: f32,  // the padding behind it keeps neighbours in different banks
}

// An invocation's share of a pair's sums, and of the squares that the norm divides by.
struct Share {
  sums: vec2f,
  squares: f32,
}

var<workgroup> x_tile: array<Columns, TILE>;
var<workgroup> octet_facts: array<vec2f, 4u * TILE>;  // the largest value and the sum of an octet; later squares
var<workgroup> partials: array<vec2f, WORKGROUP>;

fn fine_plane(columns: vec4f) -> u32 {
  return low_bytes(low_halves((columns - round(columns)) * FINE + ROUNDER));
}

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
