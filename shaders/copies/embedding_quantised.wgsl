// out[i] = row indices[i] of the table, dequantised, if it is one of the rows that are at hand. An
// invocation does eight columns.
// indices: [count]; out: [count, columns].
// needs: weight = shared/weights/octets_*, shared/weights/dequantise

struct Params {
  count: u32,  // live indices
  rows: u32,  // of the table
  first_row: u32,  // that is at hand, and how many
  rows_here: u32,
  octets: u32,  // columns / 8
  quads: u32,
  octets_per_group: u32,  // this and the next are for q4gsw alone
  row_groups: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read_write> out: array<vec4f>;
@group(0) @binding(1) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> indices: array<i32>;

fn row_scales(row: u32) -> vec2u {
  return vec2u(row * params.row_groups, 1u);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let at = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (at >= params.count * params.octets) {
    return;
  }
  // What comes before the rows at hand wraps around to a number past them.
  let row = u32(clamp(indices[at / params.octets], 0, i32(params.rows) - 1)) - params.first_row;
  if (row >= params.rows_here) {
    return;
  }
  let values = dequantised(row_at(row), columns_at(at % params.octets));
  out[2u * at] = values[0];
  out[2u * at + 1u] = values[1];
}
