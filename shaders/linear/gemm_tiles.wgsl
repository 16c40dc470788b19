// Several lines of x and a matrix large enough for many tiles. A workgroup computes a tile of SIDE ×
// SIDE outputs, DEPTH columns of K at a time: both factors are laid out in workgroup memory column by
// column, four lines or rows in a vector. An invocation keeps 8 × 8 sums in registers: four loads from
// that memory for 64 products.
// needs: linear/fragments/io, shared/weights/dequantise, finish = linear/fragments/finish_*, @pair_rows

const WORKGROUP = 64u;
const SIDE = 64u;
const DEPTH = 16u;
const QUADS = SIDE / 4u;  // vectors of four lines, or rows, in a column of a tile
const HALF = QUADS / 2u;  // an invocation has one vector of the first half, and one of the second

// An invocation carries one part of x from memory to the tile, 4 lines × 4 columns, and half of them
// one of the weight as well, 4 rows × 8 columns.
const WEIGHT_PARTS = QUADS * DEPTH / 8u;

var<workgroup> x_tile: array<vec4f, QUADS * DEPTH>;  // [column][quad of lines]
var<workgroup> weight_tile: array<vec4f, QUADS * DEPTH>;

struct Parts {
  x: mat4x4f,
  low: mat4x4f,  // of the weight
  high: mat4x4f,
}

fn x_quad(line: u32, quad: u32) -> vec4f {
  // Lines past the end repeat the last one, and are not stored.
  let value = x[min(line, params.count - 1u) * params.quads + min(quad, params.quads - 1u)];
  return select(vec4f(), value, quad < params.quads);
}

fn fetch(lane: u32, first_line: u32, first_pair: u32, first_octet: u32) -> Parts {
  let line = first_line + 4u * (lane % QUADS);
  let quad = 2u * first_octet + lane / QUADS;
  var parts: Parts;
  parts.x = transpose(mat4x4f(
    x_quad(line, quad),
    x_quad(line + 1u, quad),
    x_quad(line + 2u, quad),
    x_quad(line + 3u, quad),
  ));
  if (lane < WEIGHT_PARTS) {
    // Four rows of the weight are two pairs. Columns past the end of K need no zeros: x has them.
    let octet = min(first_octet + lane / QUADS, params.octets - 1u);
    let pair = first_pair + 2u * (lane % QUADS);
    let upper = pair_rows(pair);
    let lower = pair_rows(pair + 1u);
    let a = dequantised(upper.x, octet);
    let b = dequantised(upper.y, octet);
    let c = dequantised(lower.x, octet);
    let d = dequantised(lower.y, octet);
    parts.low = transpose(mat4x4f(a[0], b[0], c[0], d[0]));
    parts.high = transpose(mat4x4f(a[1], b[1], c[1], d[1]));
  }
  return parts;
}

fn put_down(lane: u32, parts: Parts) {
  let quad = lane % QUADS;
  let place = lane / QUADS;
  for (var column = 0u; column < 4u; column++) {
    x_tile[(4u * place + column) * QUADS + quad] = parts.x[column];
  }
  if (lane < WEIGHT_PARTS) {
    for (var column = 0u; column < 4u; column++) {
      weight_tile[(8u * place + column) * QUADS + quad] = parts.low[column];
      weight_tile[(8u * place + 4u + column) * QUADS + quad] = parts.high[column];
    }
  }
}

// sums + linesᵀ rows
fn added(sums: mat4x4f, lines: vec4f, rows: vec4f) -> mat4x4f {
  return sums + mat4x4f(lines.x * rows, lines.y * rows, lines.z * rows, lines.w * rows);
}

// sums: a column for each of four lines
fn store_block(first_line: u32, pair: u32, sums: mat4x4f) {
  for (var at = 0u; at < 4u; at++) {
    let line = first_line + at;
    if (line < params.count && pair < params.pairs) {
      store_pair(line, pair, sums[at].xy);
    }
    if (line < params.count && pair + 1u < params.pairs) {
      store_pair(line, pair + 1u, sums[at].zw);
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
  let tiles_across = (params.pairs + SIDE / 2u - 1u) / (SIDE / 2u);
  let first_line = index / tiles_across * SIDE;
  let first_pair = index % tiles_across * (SIDE / 2u);
  let down = lane / HALF;
  let across = lane % HALF;
  var upper_left = mat4x4f();
  var upper_right = mat4x4f();
  var lower_left = mat4x4f();
  var lower_right = mat4x4f();
  var parts = fetch(lane, first_line, first_pair, 0u);
  for (var octet = 0u; octet < params.octets; octet += DEPTH / 8u) {
    put_down(lane, parts);
    workgroupBarrier();
    // The next columns are on their way while these are multiplied.
    parts = fetch(lane, first_line, first_pair, octet + DEPTH / 8u);
    for (var column = 0u; column < DEPTH; column++) {
      let upper = x_tile[column * QUADS + down];
      let lower = x_tile[column * QUADS + HALF + down];
      let left = weight_tile[column * QUADS + across];
      let right = weight_tile[column * QUADS + HALF + across];
      upper_left = added(upper_left, upper, left);
      upper_right = added(upper_right, upper, right);
      lower_left = added(lower_left, lower, left);
      lower_right = added(lower_right, lower, right);
    }
    workgroupBarrier();
  }
  let line = first_line + 4u * down;
  let pair = first_pair + 2u * across;
  store_block(line, pair, upper_left);
  store_block(line, pair + SIDE / 4u, upper_right);
  store_block(line + SIDE / 2u, pair, lower_left);
  store_block(line + SIDE / 2u, pair + SIDE / 4u, lower_right);
}
