// gemv_f32.wgsl for rows of two kinds of weights, one matrix below the other: the first workgroups compute
// rows of the first, the others those of the second, whose fragments are copied under names that end in
// _second.
// needs: linear/fragments/first_pairs, linear/fragments/pair_tile, linear/fragments/pair_shares, linear/fragments/f32_products, second = linear/fragments/f32_products, @Invocation, @pair_rows

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let first_pair = (group.y * groups.x + group.x) * GROUP_PAIRS;
  let rows = pair_rows(first_pair + own_pair(own.lane));
  var share: Share;
  if (first_pair < FIRST_PAIRS) {
    share = share_of(rows, own, first_pair == 0u);
  } else {
    share = share_of_second(rows - 2u * FIRST_PAIRS, own, false);
  }
  store_shares(first_pair, own, share);
}
