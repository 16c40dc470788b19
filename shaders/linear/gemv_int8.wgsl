// GEMV by int8 planes: one token, and weights in blocks of 32 columns (see blocks_q8_0.wgsl). Columns of x
// become integers, with one scale a block, split into three planes of signed bytes. That is as exact as
// floats, and dot4I8Packed multiplies four columns at once, where floats cost several instructions each.
//
// A workgroup lays x out in its memory, as many blocks at a time as fit. Its invocations take a block of a
// pair of rows each: ADJACENT neighbours read neighbouring blocks of one row, which share a cache line;
// GROUP_PAIRS such sets lie one pair below the other, as scales may be stored by rows; the remaining
// invocations take the columns further on. Weights are loaded one step ahead.
// needs: linear/fragments/pair_tile, linear/fragments/pair_shares, linear/fragments/int8_products, @Invocation, @pair_rows

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
