// One row of x. An invocation computes eight outputs over all of K, 32 columns at a time: x is
// loaded once for eight rows of weights, and nothing is shared, so there is no barrier.

const WORKGROUP = 8u;
const ROWS = 8u;

// Groups that are no multiple of 32 columns: every eight columns look for their own scale.
override SCALE_PER_OCTET: bool = false;

struct Block {
  a: mat2x4f,
  b: mat2x4f,
  c: mat2x4f,
  d: mat2x4f,
  sums: vec4f,  // of each octet
}

fn sum_of(octet: mat2x4f) -> f32 {
  return dot(octet[0] + octet[1], vec4f(1.0));
}

fn x_block(block: u32) -> Block {
  let a = x_octet(0u, 4u * block);
  let b = x_octet(0u, 4u * block + 1u);
  let c = x_octet(0u, 4u * block + 2u);
  let d = x_octet(0u, 4u * block + 3u);
  return Block(a, b, c, d, vec4f(sum_of(a), sum_of(b), sum_of(c), sum_of(d)));
}

fn octet_dot(row: u32, octet: u32, values: mat2x4f) -> f32 {
  let weights = quants(row, octet);
  return dot(weights[0], values[0]) + dot(weights[1], values[1]);
}

// Sum of weight * x over a block. Octets past the end are clamped: x is zero there.
fn block_dot(row: u32, block: u32, values: Block) -> f32 {
  let octets = min(vec4u(4u * block) + vec4u(0u, 1u, 2u, 3u), vec4u(params.octets - 1u));
  let dots = vec4f(
    octet_dot(row, octets.x, values.a),
    octet_dot(row, octets.y, values.b),
    octet_dot(row, octets.z, values.c),
    octet_dot(row, octets.w, values.d),
  );
  let first = affine(row, octets.x);
  if (!SCALE_PER_OCTET) {
    return first.x * dot(dots, vec4f(1.0)) + first.y * dot(values.sums, vec4f(1.0));
  }
  let second = affine(row, octets.y);
  let third = affine(row, octets.z);
  let fourth = affine(row, octets.w);
  return dot(vec4f(first.x, second.x, third.x, fourth.x), dots)
    + dot(vec4f(first.y, second.y, third.y, fourth.y), values.sums);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = ((group.y * groups.x + group.x) * WORKGROUP + lane) * ROWS;
  if (row >= params.rows) {
    return;
  }
  let last = vec4u(params.rows - 1u);
  let r = min(vec4u(row) + vec4u(0u, 1u, 2u, 3u), last);
  let s = min(vec4u(row) + vec4u(4u, 5u, 6u, 7u), last);
  var sums_r = vec4f();
  var sums_s = vec4f();
  let blocks = (params.octets + 3u) / 4u;
  for (var block = 0u; block < blocks; block++) {
    let values = x_block(block);
    sums_r += vec4f(
      block_dot(r.x, block, values),
      block_dot(r.y, block, values),
      block_dot(r.z, block, values),
      block_dot(r.w, block, values),
    );
    sums_s += vec4f(
      block_dot(s.x, block, values),
      block_dot(s.y, block, values),
      block_dot(s.z, block, values),
      block_dot(s.w, block, values),
    );
  }
  var sums = array(sums_r, sums_s);
  for (var at = 0u; at < min(ROWS, params.rows - row); at++) {
    store(0u, row + at, sums[at / 4u][at % 4u]);
  }
}
