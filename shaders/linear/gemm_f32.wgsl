// GEMM in floats: several tokens, and weights in blocks of 32 columns, for GPUs that have no instruction for
// dot4I8Packed. A workgroup computes a tile of TOKENS × ROWS outputs, half a block of K at a time: both factors
// lie in workgroup memory column by column, four tokens or rows in a vector, and an invocation keeps the sums of
// eight tokens with four rows in registers. Some invocations carry x there, and others the weight.
// needs: shared/outer, linear/fragments/x, shared/weights/packed_values, blocks = shared/weights/blocks_*, epilogue = linear/fragments/epilogue_*, @pair_rows

const SIDE = 16u;  // invocations along the tokens, and along the rows
const WORKGROUP = SIDE * SIDE;
const ROWS = 4u * SIDE;
const TOKENS = 8u * SIDE;
const COLUMNS = 16u;  // of a half
const WORDS = COLUMNS / 4u;
const TOKEN_QUADS = TOKENS / 4u;
const CARRIERS = TOKEN_QUADS * WORDS;  // invocations that carry x
const WEIGHT_CARRIERS = SIDE * WORDS;  // and those after them that carry the weight

// Of four rows.
struct FourBlocks {
  a: WeightBlock,
  b: WeightBlock,
  c: WeightBlock,
  d: WeightBlock,
}

var<workgroup> x_tile: array<vec4f, COLUMNS * TOKEN_QUADS>;  // [column][quad of tokens]
var<workgroup> weight_tile: array<vec4f, COLUMNS * SIDE>;  // [column][quad of rows]

// Where a quad of a column lies: neither storing nor loading meets one bank of memory twice.
fn place_of(column: u32, quad: u32, quads: u32) -> u32 {
  return column * quads + (quad ^ (column / 4u * 2u));
}

// Four tokens × four columns, a column each.
fn fetch_x(tokens: vec4u, quad: u32) -> mat4x4f {
  let own = min(quad, params.shape.quads - 1u);  // what is past the end is not used
  return transpose(mat4x4f(
    x[tokens.x * params.shape.quads + own],
    x[tokens.y * params.shape.quads + own],
    x[tokens.z * params.shape.quads + own],
    x[tokens.w * params.shape.quads + own],
  ));
}

fn fetch_blocks(rows: vec4u, block: u32) -> FourBlocks {
  let own = min(block, params.shape.octets / 4u - 1u);
  return FourBlocks(
    load_block(rows.x, own),
    load_block(rows.y, own),
    load_block(rows.z, own),
    load_block(rows.w, own),
  );
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

fn store_x(columns: mat4x4f, word: u32, quad: u32) {
  let at = place_of(4u * word, quad, TOKEN_QUADS);
  x_tile[at] = columns[0];
  x_tile[at + TOKEN_QUADS] = columns[1];
  x_tile[at + 2u * TOKEN_QUADS] = columns[2];
  x_tile[at + 3u * TOKEN_QUADS] = columns[3];
}

fn store_weights(held: FourBlocks, half: u32, word: u32, quad: u32) {
  let columns = transpose(mat4x4f(
    raised_word(held.a, half, word),
    raised_word(held.b, half, word),
    raised_word(held.c, half, word),
    raised_word(held.d, half, word),
  ));
  // With PAIRED a word has every second column of eight.
  let first = select(4u * word, 8u * (word / 2u) + word % 2u, PAIRED);
  let step = select(1u, 2u, PAIRED);
  weight_tile[place_of(first, quad, SIDE)] = columns[0];
  weight_tile[place_of(first + step, quad, SIDE)] = columns[1];
  weight_tile[place_of(first + 2u * step, quad, SIDE)] = columns[2];
  weight_tile[place_of(first + 3u * step, quad, SIDE)] = columns[3];
}

fn store_sums(token: u32, pair: u32, sums: vec4f) {
  if (token < params.shape.tokens && pair < params.pairs) {
    store_pair(token, pair, BYTE_UNIT * sums.xy);
  }
  if (token < params.shape.tokens && pair + 1u < params.pairs) {
    store_pair(token, pair + 1u, BYTE_UNIT * sums.zw);
  }
}

fn store_tokens(token: u32, pair: u32, sums: mat4x4f) {
  store_sums(token, pair, sums[0]);
  store_sums(token + 1u, pair, sums[1]);
  store_sums(token + 2u, pair, sums[2]);
  store_sums(token + 3u, pair, sums[3]);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = group.y * groups.x + group.x;
  let tiles_across = (params.pairs + ROWS / 2u - 1u) / (ROWS / 2u);
  let first_pair = (index % tiles_across) * (ROWS / 2u);
  let first_token = (index / tiles_across) * TOKENS;
  let down = lane / SIDE;
  let across = lane % SIDE;
  let word = lane % WORDS;
  let is_carrier = lane < CARRIERS;
  let carries_weight = !is_carrier && lane < CARRIERS + WEIGHT_CARRIERS;
  let quad = lane / WORDS;  // of tokens
  let row_quad = (lane - CARRIERS) / WORDS % SIDE;
  let tokens = min(
    vec4u(first_token + 4u * quad) + vec4u(0, 1, 2, 3),
    vec4u(params.shape.tokens - 1u),
  );
  let carried_pair = first_pair + 2u * row_quad;
  let rows = vec4u(pair_rows(carried_pair), pair_rows(carried_pair + 1u));
  // Of the near and the far quad of tokens.
  var near = mat4x4f();
  var far = mat4x4f();
  var next_x = mat4x4f();
  var blocks = FourBlocks();
  if (is_carrier) {
    next_x = fetch_x(tokens, word);
  }
  if (carries_weight) {
    blocks = fetch_blocks(rows, 0u);
  }
  for (var half = 0u; half < params.shape.octets / 2u; half++) {
    if (is_carrier) {
      store_x(next_x, word, quad);
    }
    if (carries_weight) {
      store_weights(blocks, half % 2u, word, row_quad);
    }
    workgroupBarrier();
    // Prefetch what is next while this is multiplied.
    if (is_carrier) {
      next_x = fetch_x(tokens, (half + 1u) * WORDS + word);
    }
    if (carries_weight && half % 2u == 1u) {
      blocks = fetch_blocks(rows, half / 2u + 1u);
    }
    for (var column = 0u; column < COLUMNS; column++) {
      let own_rows = weight_tile[place_of(column, across, SIDE)];
      let own_tokens = place_of(column, down, TOKEN_QUADS);
      near = with_outer(near, own_rows, x_tile[own_tokens]);
      far = with_outer(far, own_rows, x_tile[own_tokens + SIDE]);
    }
    workgroupBarrier();
  }
  let token = first_token + 4u * down;
  let pair = first_pair + 2u * across;
  store_tokens(token, pair, near);
  store_tokens(token + 4u * SIDE, pair, far);
}
