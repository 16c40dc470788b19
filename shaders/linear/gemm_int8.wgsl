// GEMM by int8 planes: several tokens, and weights in blocks of 32 columns, multiplied as integers. Both
// planes of x (see split_planes.wgsl) meet the weight's bytes, four columns at once, in dot4I8Packed. A
// workgroup computes a tile of SIDE × SIDE outputs, one block of K at a time: both factors lie in workgroup
// memory, the weight unpacked to bytes, and an invocation keeps 8 × 4 sums in registers. Small tiles leave
// invocations for split-K: each split takes every so many blocks, and the sums are added up in the end.
// needs: linear/fragments/io, linear/fragments/plane_layout, blocks = shared/weights/blocks_*, epilogue = linear/fragments/epilogue_*, @pair_rows

const WORKGROUP = 128u;
override SIDE: u32 = 64u;
override DOWN: u32 = SIDE / 8u;  // invocations along the tokens: each has every DOWN-th one
override ACROSS: u32 = SIDE / 4u;  // invocations along the rows: each has two pairs, ACROSS apart
override MEMBERS: u32 = DOWN * ACROSS;  // invocations of a split
override K_SPLITS: u32 = WORKGROUP / MEMBERS;

// An invocation carries this many vectors of x from memory to its split's tile, and a row's block of the
// weight, or a share of it.
override CARRIED: u32 = (VECTORS * SIDE + MEMBERS - 1u) / MEMBERS;
const MAX_CARRIED = 5u;

struct Carried {
  x: array<vec4u, MAX_CARRIED>,
  weight: WeightBlock,
}

@group(0) @binding(0) var<storage, read> x: array<vec4u>;  // [K / 32, VECTORS, count]

var<workgroup> x_tiles: array<vec4u, K_SPLITS * VECTORS * SIDE>;  // [split][vector][token]
// The first rows of all pairs come before the second ones. [split][two octets][row], [split][row]
var<workgroup> weight_tiles: array<vec4u, K_SPLITS * 2u * SIDE>;
var<workgroup> affine_tiles: array<vec4f, K_SPLITS * SIDE>;  // of both halves of a block

fn fetch(member: u32, first_token: u32, row: u32, block: u32) -> Carried {
  let last = params.shape.octets / 4u - 1u;
  let first = min(block, last) * VECTORS;
  var carried: Carried;
  for (var at = 0u; at < CARRIED; at++) {
    let place = at * MEMBERS + member;
    let token = live_token(first_token + place % SIDE);
    let vector = min(place / SIDE, VECTORS - 1u);
    let value = x[(first + vector) * params.shape.tokens + token];
    carried.x[at] = select(vec4u(), value, block <= last);
  }
  carried.weight = load_block(row, min(block, last));
  return carried;
}

fn store_tiles(k_split: u32, member: u32, carried: Carried) {
  for (var at = 0u; at < CARRIED; at++) {
    let place = at * MEMBERS + member;
    if (place < VECTORS * SIDE) {
      x_tiles[k_split * VECTORS * SIDE + place] = carried.x[at];
    }
  }
  for (var place = member; place < 2u * SIDE; place += MEMBERS) {
    let octet = 2u * (place / SIDE);
    weight_tiles[k_split * 2u * SIDE + place] = vec4u(
      weight_bytes(carried.weight, octet),
      weight_bytes(carried.weight, octet + 1u),
    );
  }
  if (member < SIDE) {
    affine_tiles[k_split * SIDE + member] =
      vec4f(half_affine(carried.weight, 0u), half_affine(carried.weight, HALVES - 1u));
  }
}

struct Row {
  first: vec4u,  // bytes of the first half of a block
  second: vec4u,
  affine: vec4f,  // (scale, minimum) of both halves
}

struct Rows {
  a: Row,
  b: Row,
  c: Row,
  d: Row,
}

fn row_at(k_split: u32, place: u32) -> Row {
  let first = k_split * 2u * SIDE + place;
  return Row(weight_tiles[first], weight_tiles[first + SIDE], affine_tiles[k_split * SIDE + place]);
}

struct Token {
  a: vec4u,  // two planes of an octet
  b: vec4u,
  c: vec4u,
  d: vec4u,
  facts: vec4f,
}

fn token_at(k_split: u32, place: u32) -> Token {
  let first = k_split * VECTORS * SIDE + place;
  return Token(
    x_tiles[first],
    x_tiles[first + SIDE],
    x_tiles[first + 2u * SIDE],
    x_tiles[first + 3u * SIDE],
    // BYTE_UNIT goes into the scale of x: a scale of the weight may be too small for it.
    bitcast<vec4f>(x_tiles[first + FACTS * SIDE]) * vec4f(BYTE_UNIT, 1.0, 1.0, 1.0),
  );
}

// The integer dot product of 16 columns.
fn whole(bytes: vec4u, even: vec4u, odd: vec4u) -> i32 {
  let high = dot4I8Packed(bytes.x, even.x) + dot4I8Packed(bytes.y, even.y)
    + dot4I8Packed(bytes.z, odd.x) + dot4I8Packed(bytes.w, odd.y);
  let low = dot4I8Packed(bytes.x, even.z) + dot4I8Packed(bytes.y, even.w)
    + dot4I8Packed(bytes.z, odd.z) + dot4I8Packed(bytes.w, odd.w);
  return 256 * high + low;
}

fn block_dot(row: Row, token: Token) -> f32 {
  let first = whole(row.first, token.a, token.b);
  let second = whole(row.second, token.c, token.d);
  var sum = row.affine.x * f32(first + second);
  if (HALVES == 2u) {
    sum = row.affine.x * f32(first) + row.affine.z * f32(second);
  }
  sum *= token.facts.x;
  if (ADDS) {
    sum += row.affine.y * token.facts.y + row.affine.w * token.facts.z;
  }
  return sum;
}

fn block_dots(rows: Rows, token: Token) -> vec4f {
  return vec4f(
    block_dot(rows.a, token),
    block_dot(rows.b, token),
    block_dot(rows.c, token),
    block_dot(rows.d, token),
  );
}

fn store_sums(token: u32, pair: u32, sums: vec4f) {
  if (token < params.shape.tokens && pair < params.pairs) {
    store_pair(token, pair, sums.xy);
  }
  if (token < params.shape.tokens && pair + ACROSS < params.pairs) {
    store_pair(token, pair + ACROSS, sums.zw);
  }
}

// Add up the splits' sums: each of the four splits gets the total of one of four tokens.
fn add_up(lane: u32, sums: mat4x4f) -> vec4f {
  for (var at = 0u; at < 4u; at++) {
    x_tiles[at * WORKGROUP + lane] = bitcast<vec4u>(sums[at]);
  }
  workgroupBarrier();
  var total = vec4f();
  for (var k_split = 0u; k_split < K_SPLITS; k_split++) {
    total += bitcast<vec4f>(x_tiles[lane / MEMBERS * WORKGROUP + k_split * MEMBERS + lane % MEMBERS]);
  }
  workgroupBarrier();
  return total;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = group.y * groups.x + group.x;
  let tiles_across = (params.pairs + SIDE / 2u - 1u) / (SIDE / 2u);
  let first_pair = (index % tiles_across) * (SIDE / 2u);
  let first_token = (index / tiles_across) * SIDE;
  let k_split = lane / MEMBERS;
  let member = lane % MEMBERS;
  let down = member / ACROSS;
  let across = member % ACROSS;
  let carried_rows = pair_rows(first_pair + member % (SIDE / 2u));
  let row = select(carried_rows.y, carried_rows.x, member % SIDE < SIDE / 2u);
  var upper = mat4x4f();  // a column for each token, a row for each row of the weight
  var lower = mat4x4f();
  var next = fetch(member, first_token, row, k_split);
  for (var block = 0u; block < params.shape.octets / 4u; block += K_SPLITS) {
    store_tiles(k_split, member, next);
    workgroupBarrier();
    // Prefetch the next block while this one is multiplied.
    next = fetch(member, first_token, row, block + K_SPLITS + k_split);
    let rows = Rows(
      row_at(k_split, across),
      row_at(k_split, across + SIDE / 2u),
      row_at(k_split, across + ACROSS),
      row_at(k_split, across + ACROSS + SIDE / 2u),
    );
    upper[0] += block_dots(rows, token_at(k_split, down));
    upper[1] += block_dots(rows, token_at(k_split, down + DOWN));
    upper[2] += block_dots(rows, token_at(k_split, down + 2u * DOWN));
    upper[3] += block_dots(rows, token_at(k_split, down + 3u * DOWN));
    lower[0] += block_dots(rows, token_at(k_split, down + 4u * DOWN));
    lower[1] += block_dots(rows, token_at(k_split, down + 5u * DOWN));
    lower[2] += block_dots(rows, token_at(k_split, down + 6u * DOWN));
    lower[3] += block_dots(rows, token_at(k_split, down + 7u * DOWN));
    workgroupBarrier();
  }
  let token = first_token + down;
  let pair = first_pair + across;
  if (K_SPLITS == 1u) {
    for (var at = 0u; at < 4u; at++) {
      store_sums(token + at * DOWN, pair, upper[at]);
      store_sums(token + (4u + at) * DOWN, pair, lower[at]);
    }
  } else {
    // There are four splits.
    store_sums(token + k_split * DOWN, pair, add_up(lane, upper));
    store_sums(token + (4u + k_split) * DOWN, pair, add_up(lane, lower));
  }
}
