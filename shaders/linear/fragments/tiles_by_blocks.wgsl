// GEMM over blocks of 32 columns: several tokens, which come in blocks with a scale each (split_planes.wgsl),
// and weights in blocks. A workgroup computes a tile of SIDE × SIDE outputs, one block of K at a time: both
// factors lie in workgroup memory, and an invocation keeps 8 × 4 sums in registers. Small tiles leave
// invocations for split-K: each split takes every so many blocks, and the sums are added up in the end.
//
// A kernel says what it multiplies:
//   WEIGHT_VECTORS, weight_vector   a row's block as it lies in workgroup memory
//   Row, row_at; Token, token_at    a block of a row, and of a token, as they are read from there
//   block_dot                       their product
// needs: linear/fragments/io, linear/fragments/plane_layout, blocks = shared/weights/blocks_*, epilogue = linear/fragments/epilogue_*, @pair_rows, @WEIGHT_VECTORS, @weight_vector, @Row, @row_at, @Token, @token_at, @block_dot

override WORKGROUP: u32 = 128u;
override SIDE: u32 = 64u;
override DOWN: u32 = SIDE / 8u;  // invocations along the tokens: each has every DOWN-th one
override ACROSS: u32 = SIDE / 4u;  // invocations along the rows: each has two pairs, ACROSS apart
override MEMBERS: u32 = DOWN * ACROSS;  // invocations of a split
override K_SPLITS: u32 = WORKGROUP / MEMBERS;

// An invocation carries this many vectors of x from memory to its split's tile, and a row's block of the
// weight, or a share of it. They stand in members, as not all compilers keep arrays in registers.
override CARRIED: u32 = (VECTORS * SIDE + MEMBERS - 1u) / MEMBERS;

struct Carried {
  a: vec4u,
  b: vec4u,
  c: vec4u,
  d: vec4u,
  e: vec4u,
  weight: WeightBlock,
}

@group(0) @binding(0) var<storage, read> x: array<vec4u>;  // [K / 32, VECTORS, count]

var<workgroup> x_tiles: array<vec4u, K_SPLITS * VECTORS * SIDE>;  // [split][vector][token]
// The first rows of all pairs come before the second ones. [split][vector][row], [split][row]
var<workgroup> weight_tiles: array<vec4u, K_SPLITS * WEIGHT_VECTORS * SIDE>;
var<workgroup> affine_tiles: array<vec4f, K_SPLITS * SIDE>;  // of both halves of a block

fn fetch_vector(place: u32, first_token: u32, block: u32) -> vec4u {
  let last = params.shape.octets / 4u - 1u;
  let token = live_token(first_token + place % SIDE);
  let vector = min(place / SIDE, VECTORS - 1u);
  let value = x[(min(block, last) * VECTORS + vector) * params.shape.tokens + token];
  return select(vec4u(), value, block <= last);
}

fn fetch(member: u32, first_token: u32, row: u32, block: u32) -> Carried {
  var carried: Carried;
  carried.a = fetch_vector(member, first_token, block);
  if (CARRIED > 1u) {
    carried.b = fetch_vector(MEMBERS + member, first_token, block);
  }
  if (CARRIED > 2u) {
    carried.c = fetch_vector(2u * MEMBERS + member, first_token, block);
  }
  if (CARRIED > 3u) {
    carried.d = fetch_vector(3u * MEMBERS + member, first_token, block);
  }
  if (CARRIED > 4u) {
    carried.e = fetch_vector(4u * MEMBERS + member, first_token, block);
  }
  carried.weight = load_block(row, min(block, params.shape.octets / 4u - 1u));
  return carried;
}

fn store_vector(k_split: u32, place: u32, vector: vec4u) {
  if (place < VECTORS * SIDE) {
    x_tiles[k_split * VECTORS * SIDE + place] = vector;
  }
}

fn store_tiles(k_split: u32, member: u32, carried: Carried) {
  store_vector(k_split, member, carried.a);
  if (CARRIED > 1u) {
    store_vector(k_split, MEMBERS + member, carried.b);
  }
  if (CARRIED > 2u) {
    store_vector(k_split, 2u * MEMBERS + member, carried.c);
  }
  if (CARRIED > 3u) {
    store_vector(k_split, 3u * MEMBERS + member, carried.d);
  }
  if (CARRIED > 4u) {
    store_vector(k_split, 4u * MEMBERS + member, carried.e);
  }
  for (var place = member; place < WEIGHT_VECTORS * SIDE; place += MEMBERS) {
    weight_tiles[k_split * WEIGHT_VECTORS * SIDE + place] = weight_vector(carried.weight, place / SIDE);
  }
  if (member < SIDE) {
    affine_tiles[k_split * SIDE + member] =
      vec4f(half_affine(carried.weight, 0u), half_affine(carried.weight, HALVES - 1u));
  }
}

struct Rows {
  a: Row,
  b: Row,
  c: Row,
  d: Row,
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

// Lays down a split's sums of four tokens, a column each, for all splits to add up.
fn lay_down(lane: u32, sums: mat4x4f) {
  x_tiles[lane] = bitcast<vec4u>(sums[0]);
  x_tiles[WORKGROUP + lane] = bitcast<vec4u>(sums[1]);
  x_tiles[2u * WORKGROUP + lane] = bitcast<vec4u>(sums[2]);
  x_tiles[3u * WORKGROUP + lane] = bitcast<vec4u>(sums[3]);
  workgroupBarrier();
}

// The sums of all splits, of one of four tokens.
fn total_of(at: u32, member: u32) -> vec4f {
  var total = vec4f();
  for (var k_split = 0u; k_split < K_SPLITS; k_split++) {
    total += bitcast<vec4f>(x_tiles[at * WORKGROUP + k_split * MEMBERS + member]);
  }
  return total;
}

fn multiply(group: vec3u, groups: vec3u, lane: u32) {
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
    store_sums(token, pair, upper[0]);
    store_sums(token + DOWN, pair, upper[1]);
    store_sums(token + 2u * DOWN, pair, upper[2]);
    store_sums(token + 3u * DOWN, pair, upper[3]);
    store_sums(token + 4u * DOWN, pair, lower[0]);
    store_sums(token + 5u * DOWN, pair, lower[1]);
    store_sums(token + 6u * DOWN, pair, lower[2]);
    store_sums(token + 7u * DOWN, pair, lower[3]);
    return;
  }
  // Each split stores some of the tokens.
  lay_down(lane, upper);
  for (var at = k_split; at < 4u; at += K_SPLITS) {
    store_sums(token + at * DOWN, pair, total_of(at, member));
  }
  workgroupBarrier();
  lay_down(lane, lower);
  for (var at = k_split; at < 4u; at += K_SPLITS) {
    store_sums(token + (4u + at) * DOWN, pair, total_of(at, member));
  }
}
