// GEMM for GPUs with cheap workgroup memory: several tokens, multiplied as floats. A workgroup computes a
// tile of SIDE × SIDE outputs, SIDE columns of K at a time: both factors lie in workgroup memory column by
// column, four tokens or rows in a vector, and an invocation keeps 4 × 4 sums in registers. There are
// invocations for split-K: each split takes every so many columns, and the sums are added up in the end.
// needs: linear/fragments/io, linear/fragments/x, weight = shared/weights/octets_*, shared/weights/dequantise, epilogue = linear/fragments/epilogue_*, @pair_rows

const WORKGROUP = 128u;  // every device allows as many
const SIDE = 32u;
const QUADS = SIDE / 4u;  // vectors of four tokens or rows in a column of the tile
const MEMBERS = QUADS * QUADS;  // invocations of a split
const K_SPLITS = WORKGROUP / MEMBERS;

// An invocation carries one block of x from memory to its split's tile, 4 tokens × 4 columns, and half of
// them also carry a block of the weight, 4 rows × 8 columns.
const WEIGHT_BLOCKS = MEMBERS / 2u;

var<workgroup> x_tiles: array<vec4f, 4u * WORKGROUP>;  // [split][column][quad of tokens]
var<workgroup> weight_tiles: array<vec4f, 4u * WORKGROUP>;  // [split][column][quad of rows]

struct Blocks {
  x: mat4x4f,
  low: mat4x4f,  // of the weight
  high: mat4x4f,
}

fn x_quad(token: u32, quad: u32) -> vec4f {
  let value = x[live_token(token) * params.shape.quads + min(quad, params.shape.quads - 1u)];
  return select(vec4f(), value, quad < params.shape.quads);
}

fn fetch(member: u32, first_token: u32, first_pair: u32, first_octet: u32) -> Blocks {
  let token = first_token + 4u * (member % QUADS);
  let quad = 2u * first_octet + member / QUADS;
  var blocks: Blocks;
  blocks.x = transpose(mat4x4f(
    x_quad(token, quad),
    x_quad(token + 1u, quad),
    x_quad(token + 2u, quad),
    x_quad(token + 3u, quad),
  ));
  if (member < WEIGHT_BLOCKS) {
    // Four rows of the weight are two pairs. Columns past the end of K need no zeros: those of x are zero.
    let octet = min(first_octet + member / QUADS, params.shape.octets - 1u);
    let columns = columns_at(octet);
    let pair = first_pair + 2u * (member % QUADS);
    let upper = pair_rows(pair);
    let lower = pair_rows(pair + 1u);
    let a = raised(row_at(upper.x), columns);
    let b = raised(row_at(upper.y), columns);
    let c = raised(row_at(lower.x), columns);
    let d = raised(row_at(lower.y), columns);
    blocks.low = transpose(mat4x4f(a[0], b[0], c[0], d[0]));
    blocks.high = transpose(mat4x4f(a[1], b[1], c[1], d[1]));
  }
  return blocks;
}

// Stores four columns, from the first one's place on.
fn store_x(first: u32, columns: mat4x4f) {
  x_tiles[first] = columns[0];
  x_tiles[first + QUADS] = columns[1];
  x_tiles[first + 2u * QUADS] = columns[2];
  x_tiles[first + 3u * QUADS] = columns[3];
}

fn store_weights(first: u32, columns: mat4x4f) {
  weight_tiles[first] = columns[0];
  weight_tiles[first + QUADS] = columns[1];
  weight_tiles[first + 2u * QUADS] = columns[2];
  weight_tiles[first + 3u * QUADS] = columns[3];
}

fn store_tiles(tile: u32, member: u32, blocks: Blocks) {
  let rows = member % QUADS;
  let place = member / QUADS;
  store_x(tile + 4u * place * QUADS + rows, blocks.x);
  if (member < WEIGHT_BLOCKS) {
    store_weights(tile + 8u * place * QUADS + rows, blocks.low);
    store_weights(tile + (8u * place + 4u) * QUADS + rows, blocks.high);
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
  let tile = k_split * SIDE * QUADS;
  let down = member / QUADS;
  let across = member % QUADS;
  let depth = SIDE / 8u;  // octets of a tile
  var s0 = vec4f();
  var s1 = vec4f();
  var s2 = vec4f();
  var s3 = vec4f();
  var blocks = fetch(member, first_token, first_pair, k_split * depth);
  for (var octet = 0u; octet < params.shape.octets; octet += K_SPLITS * depth) {
    store_tiles(tile, member, blocks);
    workgroupBarrier();
    // Prefetch the next columns while these are multiplied.
    blocks = fetch(member, first_token, first_pair, octet + (K_SPLITS + k_split) * depth);
    for (var column = 0u; column < SIDE; column++) {
      let tokens = x_tiles[tile + column * QUADS + down];
      let rows = weight_tiles[tile + column * QUADS + across];
      s0 += tokens.x * rows;
      s1 += tokens.y * rows;
      s2 += tokens.z * rows;
      s3 += tokens.w * rows;
    }
    workgroupBarrier();
  }
  // Each split adds up all splits' sums of its share of the four tokens.
  x_tiles[lane] = s0;
  x_tiles[WORKGROUP + lane] = s1;
  x_tiles[2u * WORKGROUP + lane] = s2;
  x_tiles[3u * WORKGROUP + lane] = s3;
  workgroupBarrier();
  let pair = first_pair + 2u * across;
  for (var at = k_split; at < 4u; at += K_SPLITS) {
    let token = first_token + 4u * down + at;
    var sums = vec4f();
    for (var other = 0u; other < K_SPLITS; other++) {
      sums += x_tiles[at * WORKGROUP + other * MEMBERS + member];
    }
    sums *= UNIT;
    if (token < params.shape.tokens && pair < params.pairs) {
      store_pair(token, pair, sums.xy);
    }
    if (token < params.shape.tokens && pair + 1u < params.pairs) {
      store_pair(token, pair + 1u, sums.zw);
    }
  }
}
