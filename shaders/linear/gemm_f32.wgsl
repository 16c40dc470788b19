// GEMM in floats: several tokens, and weights in blocks of 32 columns, for GPUs that have no instruction for
// dot4I8Packed. A workgroup computes a tile of SIDE × SIDE outputs, one block of K at a time, of which each
// of two splits takes a half: both factors lie in workgroup memory column by column, four tokens or rows in a
// vector, and an invocation keeps 8 × 8 sums in registers, which the splits add up in the end.
// needs: linear/fragments/io, linear/fragments/x, shared/weights/packed_values, blocks = shared/weights/blocks_*, epilogue = linear/fragments/epilogue_*, @pair_rows

const WORKGROUP = 128u;  // every device allows as many
const SIDE = 64u;
const QUADS = SIDE / 4u;  // vectors of four tokens or rows in a column of the tile
const ACROSS = QUADS / 2u;  // invocations along a side: each has every ACROSS-th quad
const MEMBERS = ACROSS * ACROSS;  // invocations of a split
const COLUMNS = 16u;  // of a half

// An invocation carries 4 tokens × 4 columns of x, and a word of the blocks of four rows.
struct Carried {
  x: mat4x4f,
  blocks: array<WeightBlock, 4>,
}

var<workgroup> x_tiles: array<vec4f, 2u * COLUMNS * QUADS>;  // [split][column][quad of tokens]
var<workgroup> weight_tiles: array<vec4f, 2u * COLUMNS * QUADS>;  // [split][column][quad of rows]

fn x_quad(token: u32, quad: u32) -> vec4f {
  return x[live_token(token) * params.shape.quads + quad];
}

fn fetch(first_token: u32, rows: vec4u, block: u32, k_split: u32, member: u32) -> Carried {
  let own = min(block, params.shape.octets / 4u - 1u);  // what is past the end is not used
  let token = first_token + 4u * (member % QUADS);
  let quad = 8u * own + 4u * k_split + member / QUADS;
  var carried: Carried;
  carried.x = transpose(mat4x4f(
    x_quad(token, quad),
    x_quad(token + 1u, quad),
    x_quad(token + 2u, quad),
    x_quad(token + 3u, quad),
  ));
  carried.blocks[0] = load_block(rows.x, own);
  carried.blocks[1] = load_block(rows.y, own);
  carried.blocks[2] = load_block(rows.z, own);
  carried.blocks[3] = load_block(rows.w, own);
  return carried;
}

// Four columns of a row, those of one of the four words of a half, before BYTE_UNIT: sums are multiplied by
// that instead, as GPUs may flush f32 below 2^-126 to zero, and some weights are that small.
fn raised_word(held: WeightBlock, half: u32, word: u32) -> vec4f {
  let bytes = weight_bytes(held, 2u * half + word / 2u);
  let values = signed_bytes(select(bytes.y, bytes.x, word % 2u == 0u));
  let affine = half_affine(held, half % HALVES);
  if (ADDS) {
    return values * affine.x + affine.y * (1.0 / BYTE_UNIT);
  }
  return values * affine.x;
}

fn store_tiles(carried: Carried, k_split: u32, member: u32) {
  let rows = member % QUADS;
  let word = member / QUADS;
  let weights = transpose(mat4x4f(
    raised_word(carried.blocks[0], k_split, word),
    raised_word(carried.blocks[1], k_split, word),
    raised_word(carried.blocks[2], k_split, word),
    raised_word(carried.blocks[3], k_split, word),
  ));
  let tile = k_split * COLUMNS;
  for (var at = 0u; at < 4u; at++) {
    let column = select(4u * word + at, 8u * (word / 2u) + 2u * at + word % 2u, PAIRED);
    x_tiles[(tile + 4u * word + at) * QUADS + rows] = carried.x[at];
    weight_tiles[(tile + column) * QUADS + rows] = weights[at];
  }
}

fn outer(tokens: vec4f, rows: vec4f) -> mat4x4f {
  return mat4x4f(tokens.x * rows, tokens.y * rows, tokens.z * rows, tokens.w * rows);
}

fn store_sums(token: u32, pair: u32, sums: vec4f) {
  if (token < params.shape.tokens && pair < params.pairs) {
    store_pair(token, pair, sums.xy);
  }
  if (token < params.shape.tokens && pair + 1u < params.pairs) {
    store_pair(token, pair + 1u, sums.zw);
  }
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
  // A quad of rows is two pairs.
  let carried_pair = first_pair + 2u * (member % QUADS);
  let rows = vec4u(pair_rows(carried_pair), pair_rows(carried_pair + 1u));
  // Of the near and the far quad of tokens, with those of rows: a column for each token.
  var near_near = mat4x4f();
  var near_far = mat4x4f();
  var far_near = mat4x4f();
  var far_far = mat4x4f();
  var next = fetch(first_token, rows, 0u, k_split, member);
  for (var block = 0u; block < params.shape.octets / 4u; block++) {
    store_tiles(next, k_split, member);
    workgroupBarrier();
    // Prefetch the next block while this one is multiplied.
    next = fetch(first_token, rows, block + 1u, k_split, member);
    for (var column = 0u; column < COLUMNS; column++) {
      let first = (k_split * COLUMNS + column) * QUADS;
      let near_tokens = x_tiles[first + down];
      let far_tokens = x_tiles[first + down + ACROSS];
      let near_rows = weight_tiles[first + across];
      let far_rows = weight_tiles[first + across + ACROSS];
      near_near += outer(near_tokens, near_rows);
      near_far += outer(near_tokens, far_rows);
      far_near += outer(far_tokens, near_rows);
      far_far += outer(far_tokens, far_rows);
    }
    workgroupBarrier();
  }
  // The first split gets the sums of the near tokens, the second those of the far ones.
  for (var at = 0u; at < 4u; at++) {
    if (k_split == 0u) {
      x_tiles[at * MEMBERS + member] = far_near[at];
      x_tiles[(4u + at) * MEMBERS + member] = far_far[at];
    } else {
      weight_tiles[at * MEMBERS + member] = near_near[at];
      weight_tiles[(4u + at) * MEMBERS + member] = near_far[at];
    }
  }
  workgroupBarrier();
  let token = first_token + 4u * (down + k_split * ACROSS);
  let pair = first_pair + 2u * across;
  for (var at = 0u; at < 4u; at++) {
    var near = far_near[at] + x_tiles[at * MEMBERS + member];
    var far = far_far[at] + x_tiles[(4u + at) * MEMBERS + member];
    if (k_split == 0u) {
      near = near_near[at] + weight_tiles[at * MEMBERS + member];
      far = near_far[at] + weight_tiles[(4u + at) * MEMBERS + member];
    }
    store_sums(token + at, pair, BYTE_UNIT * near);
    store_sums(token + at, pair + 2u * ACROSS, BYTE_UNIT * far);
  }
}
