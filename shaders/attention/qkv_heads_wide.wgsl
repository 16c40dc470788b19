// One workgroup a head.
// needs: shared/subgroups, attention/fragments/qkv_heads

const WORKGROUP = 32u;
const SMALLEST_SUBGROUP = 4u;

var<workgroup> subgroup_squares: array<f32, WORKGROUP / SMALLEST_SUBGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_invocation_id) subgroup_lane: u32,
  @builtin(subgroup_size) subgroup_size: u32,
) {
  let index = group.y * groups.x + group.x;
  let line = index / heads();
  let head = index % heads();
  var squares = 0.0;
  for (var dim = lane; dim < params.width; dim += WORKGROUP) {
    let value = qkv[min(line, params.count - 1u) * heads() * params.width
      + head * params.width + dim];
    squares += value * value;
  }
  squares = subgroupAdd(squares);
  if (subgroup_lane == 0u) {
    subgroup_squares[lane / subgroup_size] = squares;
  }
  workgroupBarrier();
  squares = 0.0;
  for (var at = 0u; at * subgroup_size < WORKGROUP; at++) {
    squares += subgroup_squares[at];
  }
  if (line >= params.count) {
    return;
  }
  let scale = norm_scale(head, squares);
  for (var pair = lane; pair < params.width / 2u; pair += WORKGROUP) {
    finish_pair(line, head, pair, scale);
  }
}
