// The output activation(x weightᵀ) * part, where parts: [tokens, part_stride] and the part begins at column
// first_part. out: [tokens, rows].
// needs: linear/fragments/params, gate = linear/fragments/gate_*

struct Params {
  shape: LinearParams,
  pairs: u32,  // pairs of rows
  rows: u32,  // of the weight
  first_part: u32,  // column of parts where the chosen one begins
  part_stride: u32,  // columns of parts
  eps: f32,  // of the norm of x, where it has one
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> parts: array<f32>;

fn store(token: u32, row: u32, value: f32) {
  let part = parts[token * params.part_stride + params.first_part + row];
  out[token * params.rows + row] = gated(value, part);
}
