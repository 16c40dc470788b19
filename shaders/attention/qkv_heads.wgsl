// The epilogue of q, k and v after a linear (see fragments/qkv_heads.wgsl): one invocation a head.
// needs: attention/fragments/qkv_heads

const WORKGROUP = 32u;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  let token = index / heads();
  let head = index % heads();
  if (token >= params.tokens) {
    return;
  }
  var squares = 0.0;
  if (is_normed(head)) {
    let start = token * heads() * params.width;
    let range = normed_range(head);
    for (var row = range.x; row < range.y; row++) {
      squares += qkv[start + row] * qkv[start + row];
    }
  }
  let scale = norm_scale(head, squares);
  for (var pair = 0u; pair < params.width / 2u; pair++) {
    store_head_pair(token, head, pair, scale);
  }
}
