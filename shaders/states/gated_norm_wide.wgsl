// gated_norm.wgsl with a workgroup for each row.
// needs: lanes = shared/lanes_*, states/fragments/gated_rows

const WORKGROUP = 64u;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let row = group.y * groups.x + group.x;
  let first = min(row, params.rows - 1u) * params.width;
  var sum_of_squares = 0.0;
  for (var column = own.lane; column < params.width; column += WORKGROUP) {
    let value = out[first + column];
    sum_of_squares += value * value;
  }
  let scale = scale_of(sum_of_all(own, sum_of_squares));
  if (row >= params.rows) {
    return;  // a folded grid may have a few workgroups too many
  }
  for (var column = own.lane; column < params.width; column += WORKGROUP) {
    finish(first, column, scale);
  }
}
