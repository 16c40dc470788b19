// Products of a few tokens, such as proposed ones, with weights in blocks of 32 columns, each of which is read
// once for four of them. A workgroup lays out blocks of x, in floats, in its memory; its invocations take a block
// of a pair of rows each, as those of gemv_int8.wgsl, which become floats in registers. Weights are loaded one
// step ahead.
// needs: linear/fragments/io, linear/fragments/x, shared/octets, shared/weights/float_octet, blocks = shared/weights/blocks_*, epilogue = linear/fragments/epilogue_*, @pair_rows

override WORKGROUP: u32 = 256u;
const TOKENS = 4u;  // that a workgroup takes
override PAIR_LANES: u32 = 16u;  // invocations that share a pair of rows, a block each: 16 or more
override GROUP_PAIRS: u32 = WORKGROUP / PAIR_LANES;
const ADJACENT = 8u;  // neighbours read neighbouring blocks of one row, which share a cache line
const HALF_OCTETS = 4u / HALVES;
const STRIDE = 9u;  // vectors from a block to the next one: eight and a gap, for other banks of memory

var<workgroup> x_tile: array<vec4f, STRIDE * TOKENS * PAIR_LANES>;  // [token][block][quad]; in the end sums
var<workgroup> octet_sums: array<f32, 4u * TOKENS * PAIR_LANES>;  // [token][block][octet]
var<workgroup> row_sums: array<vec4f, 2u * GROUP_PAIRS>;  // of four tokens

// Sums of four tokens with a pair of rows.
struct Sums {
  upper: vec4f,
  lower: vec4f,
}

fn lay_out(first_token: u32, first_block: u32, lane: u32) {
  for (var place = lane; place < 4u * TOKENS * PAIR_LANES; place += WORKGROUP) {
    let octet = 4u * first_block + place % (4u * PAIR_LANES);
    let token = live_token(first_token + place / (4u * PAIR_LANES));
    var values = mat2x4f();
    if (octet < params.shape.octets) {
      values = x_octet(token, octet);
    }
    let at = STRIDE * (place / 4u) + 2u * (place % 4u);
    x_tile[at] = values[0];
    x_tile[at + 1u] = values[1];
    if (ADDS) {
      octet_sums[place] = octet_sum(values);
    }
  }
}

fn x_at(at: u32, token: u32) -> mat2x4f {
  let first = at + token * STRIDE * PAIR_LANES;
  return mat2x4f(x_tile[first], x_tile[first + 1u]);
}

fn with_octet(before: Sums, upper: mat2x4f, lower: mat2x4f, at: u32) -> Sums {
  let a = x_at(at, 0u);
  let b = x_at(at, 1u);
  let c = x_at(at, 2u);
  let d = x_at(at, 3u);
  return Sums(
    before.upper
      + vec4f(octet_dot(upper, a), octet_dot(upper, b), octet_dot(upper, c), octet_dot(upper, d)),
    before.lower
      + vec4f(octet_dot(lower, a), octet_dot(lower, b), octet_dot(lower, c), octet_dot(lower, d)),
  );
}

// The sums of the columns of a half, for four tokens.
fn added_columns(member: u32, half: u32) -> vec4f {
  var sums = vec4f();
  for (var of_half = 0u; of_half < HALF_OCTETS; of_half++) {
    let at = 4u * member + half * HALF_OCTETS + of_half;
    let step = 4u * PAIR_LANES;
    sums += vec4f(
      octet_sums[at],
      octet_sums[at + step],
      octet_sums[at + 2u * step],
      octet_sums[at + 3u * step],
    );
  }
  return sums;
}

// Adds a half's products to the sums. The bytes' unit comes first: a scale may be too small for it.
fn with_half(
  before: Sums,
  raw: Sums,
  above: vec2f,
  below: vec2f,
  member: u32,
  half: u32,
) -> Sums {
  var sums = Sums(
    before.upper + BYTE_UNIT * raw.upper * above.x,
    before.lower + BYTE_UNIT * raw.lower * below.x,
  );
  if (ADDS) {
    let added = added_columns(member, half);
    sums.upper += added * above.y;
    sums.lower += added * below.y;
  }
  return sums;
}

fn with_block(before: Sums, upper: WeightBlock, lower: WeightBlock, member: u32) -> Sums {
  var sums = before;
  for (var half = 0u; half < HALVES; half++) {
    var raw = Sums();
    for (var of_half = 0u; of_half < HALF_OCTETS; of_half++) {
      let octet = half * HALF_OCTETS + of_half;
      let at = STRIDE * member + 2u * octet;
      raw = with_octet(raw, float_octet(upper, octet), float_octet(lower, octet), at);
    }
    sums = with_half(sums, raw, half_affine(upper, half), half_affine(lower, half), member, half);
  }
  return sums;
}

// Adds up the invocations' shares of all pairs with four tokens.
fn add_up(lane: u32, own: Sums) {
  workgroupBarrier();
  x_tile[2u * lane] = own.upper;
  x_tile[2u * lane + 1u] = own.lower;
  workgroupBarrier();
  if (lane < 2u * GROUP_PAIRS) {
    // An invocation takes one row of a pair.
    var sums = vec4f();
    for (var slice = 0u; slice < PAIR_LANES / ADJACENT; slice++) {
      for (var at = 0u; at < ADJACENT; at++) {
        sums += x_tile[2u * ((slice * GROUP_PAIRS + lane / 2u) * ADJACENT + at) + lane % 2u];
      }
    }
    row_sums[lane] = sums;
  }
  workgroupBarrier();
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = group.y * groups.x + group.x;
  let groups_across = (params.pairs + GROUP_PAIRS - 1u) / GROUP_PAIRS;
  let first_pair = index % groups_across * GROUP_PAIRS;
  let first_token = index / groups_across * TOKENS;
  let rows = pair_rows(first_pair + lane / ADJACENT % GROUP_PAIRS);
  let member = lane % ADJACENT + lane / (ADJACENT * GROUP_PAIRS) * ADJACENT;
  let blocks = params.shape.octets / 4u;
  var sums = Sums();
  var upper = load_block(rows.x, min(member, blocks - 1u));
  var lower = load_block(rows.y, min(member, blocks - 1u));
  for (var block = 0u; block < blocks; block += PAIR_LANES) {
    lay_out(first_token, block, lane);
    workgroupBarrier();
    let own_upper = upper;
    let own_lower = lower;
    // Past the end the last block is loaded once more: x is zero there.
    let next = min(block + PAIR_LANES + member, blocks - 1u);
    upper = load_block(rows.x, next);
    lower = load_block(rows.y, next);
    sums = with_block(sums, own_upper, own_lower, member);
    workgroupBarrier();
  }
  add_up(lane, sums);
  // An invocation takes a pair of rows with one token.
  let pair = first_pair + lane / TOKENS;
  let token = first_token + lane % TOKENS;
  if (lane < TOKENS * GROUP_PAIRS && pair < params.pairs && token < params.shape.tokens) {
    let first = 2u * (lane / TOKENS);
    store_pair(token, pair, vec2f(row_sums[first][lane % TOKENS], row_sums[first + 1u][lane % TOKENS]));
  }
}
