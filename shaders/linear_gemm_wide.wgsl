// Several rows of x, for adapters with cheap workgroup memory. A workgroup computes a square of
// SIDE × SIDE outputs, DEPTH columns of K at a time: both factors are laid out in workgroup memory
// column by column, four rows in a vector, and an invocation keeps 4 × 4 sums in registers.

const SIDE = 64u;
const DEPTH = 64u;
const QUADS = SIDE / 4u;  // vectors of four rows in a column of the square
const WORKGROUP = QUADS * QUADS;

// An invocation carries one block of x from memory to its tile, 4 rows × 4 columns, and half of them
// one of the weight as well, 4 rows × 8 columns.
const WEIGHT_BLOCKS = QUADS * (DEPTH / 8u);

var<workgroup> x_tile: array<vec4f, DEPTH * QUADS>;  // [column][quad of rows]
var<workgroup> weight_tile: array<vec4f, DEPTH * QUADS>;

struct Blocks {
  x: mat4x4f,
  low: mat4x4f,  // of the weight
  high: mat4x4f,
}

fn x_quad(line: u32, quad: u32) -> vec4f {
  // Lines past the end repeat the last one, and are not stored.
  let value = x[min(line, params.count - 1u) * params.quads + min(quad, params.quads - 1u)];
  return select(vec4f(), value, quad < params.quads);
}

fn fetch(lane: u32, first_line: u32, first_pair: u32, first_octet: u32) -> Blocks {
  let line = first_line + 4u * (lane % QUADS);
  let quad = 2u * first_octet + lane / QUADS;
  var blocks: Blocks;
  blocks.x = transpose(mat4x4f(
    x_quad(line, quad),
    x_quad(line + 1u, quad),
    x_quad(line + 2u, quad),
    x_quad(line + 3u, quad),
  ));
  if (lane < WEIGHT_BLOCKS) {
    // Four rows of the weight are two pairs. Columns past the end of K need no zeros: x has them.
    let octet = min(first_octet + lane / QUADS, params.octets - 1u);
    let pair = first_pair + 2u * (lane % QUADS);
    let upper = pair_rows(pair);
    let lower = pair_rows(pair + 1u);
    let a = dequantised(upper.x, octet);
    let b = dequantised(upper.y, octet);
    let c = dequantised(lower.x, octet);
    let d = dequantised(lower.y, octet);
    blocks.low = transpose(mat4x4f(a[0], b[0], c[0], d[0]));
    blocks.high = transpose(mat4x4f(a[1], b[1], c[1], d[1]));
  }
  return blocks;
}

fn put_down(lane: u32, blocks: Blocks) {
  let rows = lane % QUADS;
  let place = lane / QUADS;
  for (var column = 0u; column < 4u; column++) {
    x_tile[(4u * place + column) * QUADS + rows] = blocks.x[column];
  }
  if (lane < WEIGHT_BLOCKS) {
    for (var column = 0u; column < 4u; column++) {
      weight_tile[(8u * place + column) * QUADS + rows] = blocks.low[column];
      weight_tile[(8u * place + 4u + column) * QUADS + rows] = blocks.high[column];
    }
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = group.y * groups.x + group.x;
  let squares_across = (params.pairs + SIDE / 2u - 1u) / (SIDE / 2u);
  let first_pair = (index % squares_across) * (SIDE / 2u);
  let first_line = (index / squares_across) * SIDE;
  let down = lane / QUADS;
  let across = lane % QUADS;
  var s0 = vec4f();
  var s1 = vec4f();
  var s2 = vec4f();
  var s3 = vec4f();
  var blocks = fetch(lane, first_line, first_pair, 0u);
  for (var octet = 0u; octet < params.octets; octet += DEPTH / 8u) {
    put_down(lane, blocks);
    workgroupBarrier();
    // The next columns are on their way while these are multiplied.
    blocks = fetch(lane, first_line, first_pair, octet + DEPTH / 8u);
    for (var column = 0u; column < DEPTH; column++) {
      let lines = x_tile[column * QUADS + down];
      let rows = weight_tile[column * QUADS + across];
      s0 += lines.x * rows;
      s1 += lines.y * rows;
      s2 += lines.z * rows;
      s3 += lines.w * rows;
    }
    workgroupBarrier();
  }
  var sums = array(s0, s1, s2, s3);
  let line = first_line + 4u * down;
  let pair = first_pair + 2u * across;
  for (var at = 0u; at < 4u && line + at < params.count; at++) {
    if (pair < params.pairs) {
      store_pair(line + at, pair, sums[at].xy);
    }
    if (pair + 1u < params.pairs) {
      store_pair(line + at, pair + 1u, sums[at].zw);
    }
  }
}
