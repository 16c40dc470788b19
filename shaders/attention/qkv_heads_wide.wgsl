// One workgroup a head.
// needs: lanes = shared/lanes_*, attention/fragments/qkv_heads

const WORKGROUP = 32u;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let index = group.y * groups.x + group.x;
  let line = index / heads();
  let head = index % heads();
  var squares = 0.0;
  for (var dim = own.lane; dim < params.width; dim += WORKGROUP) {
    let value = qkv[min(line, params.count - 1u) * heads() * params.width
      + head * params.width + dim];
    squares += value * value;
  }
  squares = sum_of_all(own, squares);
  if (line >= params.count) {
    return;
  }
  let scale = norm_scale(head, squares);
  for (var pair = own.lane; pair < params.width / 2u; pair += WORKGROUP) {
    finish_pair(line, head, pair, scale);
  }
}
