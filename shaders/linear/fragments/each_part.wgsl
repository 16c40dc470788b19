// out = activation(x weightᵀ) * one part of each row of parts: [count, part_stride], of which the columns
// from first_part on are taken. out: [count, rows].
// needs: gate = linear/fragments/gate_*

struct Params {
  part_ends: vec4u,  // see row_scales
  part_offsets: vec4u,
  part_strides: vec4u,
  count: u32,  // live lines of x
  pairs: u32,  // of rows
  rows: u32,  // of the weight
  first_part: u32,
  part_stride: u32,
  quads: u32,  // K / 4
  octets: u32,  // ceil(K / 8)
  octets_per_group: u32,  // for q4gsw alone
  eps: f32,  // of the norm of x, where it has one
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> parts: array<f32>;

fn store(line: u32, row: u32, value: f32) {
  let part = parts[line * params.part_stride + params.first_part + row];
  out[line * params.rows + row] = gated(value, part);
}
