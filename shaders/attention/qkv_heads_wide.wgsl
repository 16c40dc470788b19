// The epilogue of q, k and v after a linear (see fragments/qkv_heads.wgsl): one workgroup a head.
// needs: lanes = shared/lanes_*, attention/fragments/qkv_heads

const WORKGROUP = 128u;  // with 32, a token of Gemma 3 1B takes 7 % longer on an H200

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let index = group.y * groups.x + group.x;
  let token = index / heads();
  let head = index % heads();
  var squares = 0.0;
  let start = min(token, params.tokens - 1u) * heads() * params.width;
  let range = normed_range(head);
  for (var row = range.x + own.lane; row < range.y; row += WORKGROUP) {
    squares += qkv[start + row] * qkv[start + row];
  }
  squares = sum_of_all(own, squares);
  if (token >= params.tokens) {
    return;
  }
  let scale = norm_scale(head, squares);
  for (var pair = own.lane; pair < params.width / 2u; pair += WORKGROUP) {
    store_head_pair(token, head, pair, scale);
  }
}
