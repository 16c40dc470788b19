// GEMV in floats: one token, and weights in blocks of 32 columns, for GPUs that have no instruction for
// dot4I8Packed. It is gemv_int8.wgsl with x in floats in workgroup memory, and with weights that become
// floats in registers.
// needs: linear/fragments/pair_tile, linear/fragments/pair_shares, linear/fragments/f32_products, @Invocation, @pair_rows

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let first_pair = (group.y * groups.x + group.x) * GROUP_PAIRS;
  let rows = pair_rows(first_pair + own_pair(own.lane));
  store_shares(first_pair, own, share_of(rows, own, first_pair == 0u));
}
