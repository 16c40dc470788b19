// Products of a few tokens, such as proposed ones, with weights in blocks of 32 columns, as integers: x comes in
// two int8 planes (see split_planes.wgsl), so that the weight's bytes are multiplied as they are. It is for large
// matrices; gemv_few.wgsl is quicker with others, which takes x as it is.
//
// A workgroup lays out blocks of x in its memory, as many as invocations share a row. An invocation takes a block
// of two pairs of rows with four tokens. ADJACENT neighbours read neighbouring blocks of one row, which share a
// cache line. Weights and the next blocks of x are loaded one step ahead; blocks of x take turns in two places, so
// that a step has one barrier.
// needs: linear/fragments/io, linear/fragments/plane_layout, linear/fragments/rows_by_planes, linear/fragments/two_planes, blocks = shared/weights/blocks_*, epilogue = linear/fragments/epilogue_*, @pair_rows

const WORKGROUP = 128u;
const TOKENS = 4u;  // that a workgroup takes
const PAIR_LANES = 16u;  // invocations that share rows, a block each
const SETS = WORKGROUP / PAIR_LANES;  // of such invocations
const GROUP_PAIRS = 2u * SETS;
const ADJACENT = 8u;
const AT_ONCE = 2u;  // tokens whose sums are added up at a time
const BLOCK_VECTORS = TOKENS * VECTORS;  // of x
const STRIDE = BLOCK_VECTORS + 1u;  // an odd number, for other banks of memory
const TILE = PAIR_LANES * STRIDE;

@group(0) @binding(0) var<storage, read> x: array<vec4u>;  // [K / 32, VECTORS, tokens]

var<workgroup> x_tiles: array<vec4u, 2u * TILE>;  // [place][block][vector][token]; in the end sums

// What an invocation carries of x from memory to the workgroup's: 16 blocks are 320 vectors. It stands in members,
// as not all compilers keep arrays in registers.
struct Carried {
  a: vec4u,
  b: vec4u,
  c: vec4u,
}

fn fetch_vector(place: u32, first_token: u32, first_block: u32) -> vec4u {
  let block = first_block + place / BLOCK_VECTORS;
  let vector = place % BLOCK_VECTORS / TOKENS;
  let token = live_token(first_token + place % TOKENS);
  if (place >= PAIR_LANES * BLOCK_VECTORS || block >= params.shape.octets / 4u) {
    return vec4u();
  }
  return x[(block * VECTORS + vector) * params.shape.tokens + token];
}

fn fetch(lane: u32, first_token: u32, first_block: u32) -> Carried {
  return Carried(
    fetch_vector(lane, first_token, first_block),
    fetch_vector(WORKGROUP + lane, first_token, first_block),
    fetch_vector(2u * WORKGROUP + lane, first_token, first_block),
  );
}

fn store_vector(tile: u32, place: u32, vector: vec4u) {
  if (place < PAIR_LANES * BLOCK_VECTORS) {
    x_tiles[tile + place / BLOCK_VECTORS * STRIDE + place % BLOCK_VECTORS] = vector;
  }
}

fn store_tile(tile: u32, lane: u32, carried: Carried) {
  store_vector(tile, lane, carried.a);
  store_vector(tile, WORKGROUP + lane, carried.b);
  store_vector(tile, 2u * WORKGROUP + lane, carried.c);
}

// A block of two pairs of rows.
struct Held {
  a: WeightBlock,
  b: WeightBlock,
  c: WeightBlock,
  d: WeightBlock,
}

fn hold(near: vec2u, far: vec2u, block: u32) -> Held {
  let at = min(block, params.shape.octets / 4u - 1u);  // x is zero past the end
  return Held(
    load_block(near.x, at),
    load_block(near.y, at),
    load_block(far.x, at),
    load_block(far.y, at),
  );
}

struct Rows {
  a: Row,
  b: Row,
  c: Row,
  d: Row,
}

fn rows_of(held: Held) -> Rows {
  return Rows(row_of(held.a), row_of(held.b), row_of(held.c), row_of(held.d));
}

fn block_dots(rows: Rows, token: Token) -> vec4f {
  return vec4f(
    block_dot(rows.a, token),
    block_dot(rows.b, token),
    block_dot(rows.c, token),
    block_dot(rows.d, token),
  );
}

// Sums of two tokens with all rows, a column each.
fn with_two(before: mat2x4f, rows: Rows, at: u32) -> mat2x4f {
  return mat2x4f(
    before[0] + block_dots(rows, token_of(at, TOKENS)),
    before[1] + block_dots(rows, token_of(at + 1u, TOKENS)),
  );
}

// Adds up what invocations have of two tokens, and stores it.
fn store_two(lane: u32, sums: mat2x4f, first_pair: u32, token: u32) {
  workgroupBarrier();
  x_tiles[lane] = bitcast<vec4u>(sums[0]);
  x_tiles[WORKGROUP + lane] = bitcast<vec4u>(sums[1]);
  workgroupBarrier();
  for (var place = lane; place < AT_ONCE * SETS * ADJACENT; place += WORKGROUP) {
    let first = place / (SETS * ADJACENT) * WORKGROUP + place % (SETS * ADJACENT);
    var sum = vec4f();
    for (var at = 0u; at < WORKGROUP; at += SETS * ADJACENT) {
      sum += bitcast<vec4f>(x_tiles[first + at]);
    }
    x_tiles[first] = bitcast<vec4u>(sum);
  }
  workgroupBarrier();
  if (lane >= AT_ONCE * GROUP_PAIRS) {
    return;
  }
  let pair = lane / AT_ONCE;
  let first = lane % AT_ONCE * WORKGROUP + pair % SETS * ADJACENT;
  var sum = vec4f();
  for (var at = 0u; at < ADJACENT; at++) {
    sum += bitcast<vec4f>(x_tiles[first + at]);
  }
  let own = token + lane % AT_ONCE;
  if (own < params.shape.tokens && first_pair + pair < params.pairs) {
    store_pair(own, first_pair + pair, select(sum.zw, sum.xy, pair < SETS));
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = group.y * groups.x + group.x;
  // Workgroups with the same rows run at the same time: a cache gives them to the second one.
  let rounds = (params.shape.tokens + TOKENS - 1u) / TOKENS;
  let first_pair = index / rounds * GROUP_PAIRS;
  let first_token = index % rounds * TOKENS;
  let left = params.shape.tokens - first_token;
  let near = pair_rows(first_pair + lane / ADJACENT % SETS);
  let far = pair_rows(first_pair + SETS + lane / ADJACENT % SETS);
  let member = lane % ADJACENT + lane / (ADJACENT * SETS) * ADJACENT;
  let blocks = params.shape.octets / 4u;
  var first = mat2x4f();
  var second = mat2x4f();
  var tile = 0u;
  var carried = fetch(lane, first_token, 0u);
  var held = hold(near, far, member);
  for (var block = 0u; block < blocks; block += PAIR_LANES) {
    store_tile(tile, lane, carried);
    workgroupBarrier();
    let rows = rows_of(held);
    carried = fetch(lane, first_token, block + PAIR_LANES);
    held = hold(near, far, block + PAIR_LANES + member);
    let at = tile + member * STRIDE;
    first = with_two(first, rows, at);
    if (left > 2u) {
      second = with_two(second, rows, at + 2u);
    }
    tile = TILE - tile;
  }
  store_two(lane, first, first_pair, first_token);
  store_two(lane, second, first_pair, first_token + 2u);
}
