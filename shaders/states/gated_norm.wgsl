// The norm of a head under its gate, one invocation a row.
// needs: states/fragments/gated_rows

const WORKGROUP = 64u;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (row >= params.rows) {
    return;
  }
  let first = row * params.width;
  var sum_of_squares = 0.0;
  for (var column = 0u; column < params.width; column++) {
    let value = out[first + column];
    sum_of_squares += value * value;
  }
  let scale = scale_of(sum_of_squares);
  for (var column = 0u; column < params.width; column++) {
    finish(first, column, scale);
  }
}
