// GEMM by matrix units: many tokens, and weights of any kind, both as halves; sums are f32. A workgroup computes
// a tile of SIDE × SIDE outputs, one block of K at a time: both factors lie in workgroup memory, and each of its
// subgroups keeps a part of the tile in small matrices of sums. x comes as halves, in parts that add up to it, with
// a scale a token (halve_tokens.wgsl). Where there are two parts, each is multiplied with the same block.
// needs: linear/fragments/io, shared/matrix_units, units = linear/fragments/units_*, factor = linear/fragments/halved_weight_*, epilogue = linear/fragments/epilogue_*, @pair_rows, @UNIT

const WORKGROUP = 128u;
const SUBGROUPS_ALONG = 2u;  // a side
const SUBGROUP_SIDE = UNITS_ALONG * UNIT_SIDE;
const SIDE = SUBGROUPS_ALONG * SUBGROUP_SIDE;
const OCTETS = 4u;  // of a block
const STRIDE = OCTETS + 1u;  // vectors from a token or row to the next: a gap, for other banks of memory
const CARRIED = SIDE * OCTETS / WORKGROUP;  // octets of x that an invocation carries, and of a row of the weight
const LANES = 32u;  // of a subgroup
const SUM_VECTORS = UNIT_SIDE * UNIT_SIDE / 4u;
override PARTS: u32 = 1u;  // of x

struct Carried {
  x: array<vec4u, CARRIED>,
  weight: Held,
}

@group(0) @binding(0) var<storage, read> x: array<vec4u>;  // [tokens, octets of all parts of blocks, then a scale]

var<workgroup> tiles: array<vec4u, 2u * SIDE * STRIDE>;  // [token, then row][octet]; in the end sums

fn steps() -> u32 {
  return (params.shape.octets + OCTETS - 1u) / OCTETS * PARTS;
}

fn fetch(first_token: u32, row: u32, step: u32, lane: u32) -> Carried {
  let own = min(step, steps() - 1u);  // what is past the end is not used
  var carried: Carried;
  for (var at = 0u; at < CARRIED; at++) {
    let place = at * WORKGROUP + lane;
    let token = live_token(first_token + place / OCTETS);
    carried.x[at] = x[token * (steps() * OCTETS + 1u) + own * OCTETS + place % OCTETS];
  }
  carried.weight = hold(row, own / PARTS);
  return carried;
}

fn store_tiles(carried: Carried, lane: u32) {
  for (var at = 0u; at < CARRIED; at++) {
    let place = at * WORKGROUP + lane;
    tiles[place / OCTETS * STRIDE + place % OCTETS] = carried.x[at];
  }
  for (var at = 0u; at < CARRIED; at++) {
    let octet = lane / SIDE * CARRIED + at;
    tiles[(SIDE + lane % SIDE) * STRIDE + octet] = halved_octet(carried.weight, octet);
  }
}

fn token_scale(token: u32) -> f32 {
  return bitcast<f32>(x[(live_token(token) + 1u) * (steps() * OCTETS + 1u) - 1u].x);
}

// A subgroup lays a matrix of its sums down; its invocations store two pairs of a token at a time.
fn store_unit(sums: SumUnit, first_token: u32, first_pair: u32, subgroup: u32, member: u32) {
  let laid_down = subgroup * SUM_VECTORS;
  subgroupMatrixStore<row_major>(&tiles, laid_down, sums, UNIT_SIDE / 4u);
  workgroupBarrier();
  for (var place = member; place < SUM_VECTORS; place += LANES) {
    let token = first_token + place / (UNIT_SIDE / 4u);
    let pair = first_pair + place % (UNIT_SIDE / 4u) * 2u;
    let values = bitcast<vec4f>(tiles[laid_down + place]) * token_scale(token) * UNIT;
    if (token < params.shape.tokens && pair < params.pairs) {
      store_pair(token, pair, values.xy);
    }
    if (token < params.shape.tokens && pair + 1u < params.pairs) {
      store_pair(token, pair + 1u, values.zw);
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) member: u32,
) {
  let index = group.y * groups.x + group.x;
  let tiles_across = (params.pairs + SIDE / 2u - 1u) / (SIDE / 2u);
  let first_pair = (index % tiles_across) * (SIDE / 2u);
  let first_token = (index / tiles_across) * SIDE;
  let carried_pair = pair_rows(first_pair + lane % SIDE / 2u);
  let row = select(carried_pair.y, carried_pair.x, lane % 2u == 0u);
  let own_token = subgroup / SUBGROUPS_ALONG * SUBGROUP_SIDE;
  let own_row = subgroup % SUBGROUPS_ALONG * SUBGROUP_SIDE;
  var sums = UnitSums();
  var next = fetch(first_token, row, 0u, lane);
  for (var step = 0u; step < steps(); step++) {
    store_tiles(next, lane);
    workgroupBarrier();
    // Prefetch the next block while this one is multiplied.
    next = fetch(first_token, row, step + 1u, lane);
    for (var octet = 0u; octet < OCTETS; octet += UNIT_VECTORS) {
      sums = accumulated(own_token * STRIDE + octet, (SIDE + own_row) * STRIDE + octet, sums);
    }
    workgroupBarrier();
  }
  store_sums(sums, first_token + own_token, first_pair + own_row / 2u, subgroup, member);
}
