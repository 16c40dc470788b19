// out[i] = row indices[i] of the table, dequantised, if that row is bound. One invocation computes eight
// columns. indices: [count]; out: [count, columns].
// needs: weight = shared/weights/octets_*, shared/weights/dequantise

// The shape of the table, by the names that weight fragments read (see linear/fragments/params.wgsl).
struct TableShape {
  quads: u32,  // columns / 4
  octets: u32,  // columns / 8
  octets_per_group: u32,  // q4gsw only
  row_groups: u32,  // q4gsw only
}

struct Params {
  shape: TableShape,
  count: u32,  // live indices
  rows: u32,  // of the table
  first_row: u32,  // of the rows that are bound
  bound_rows: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read_write> out: array<vec4f>;
@group(0) @binding(1) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> indices: array<i32>;

fn row_scales(row: u32) -> vec2u {
  return vec2u(row * params.shape.row_groups, 1u);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let at = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (at >= params.count * params.shape.octets) {
    return;
  }
  // A row before the bound ones wraps around to a number past them.
  let row = u32(clamp(indices[at / params.shape.octets], 0, i32(params.rows) - 1)) - params.first_row;
  if (row >= params.bound_rows) {
    return;
  }
  let values = dequantised(row_at(row), columns_at(at % params.shape.octets));
  out[2u * at] = values[0];
  out[2u * at + 1u] = values[1];
}
