// One token of x, and weights in blocks of 32 columns (blocks_q8_0.wgsl says what is known of them).
// Columns of x become whole numbers, a block with one scale, cut into three signed bytes ("planes"): as
// exact as floats, and dot4I8Packed multiplies four columns at once, where floats cost several
// instructions for each. A workgroup lays x out so, as many blocks at a time as fit. Its invocations
// take a block of a pair of rows each: ADJACENT neighbours share a token of memory, GROUP_PAIRS such teams
// lie one pair below the other (their scales may be stored by rows), and the rest takes the columns
// further on. Weights are loaded a step ahead where that is faster.
// needs: linear/fragments/int8_token, linear/fragments/int8_products, @pair_rows

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let first_pair = (group.y * groups.x + group.x) * GROUP_PAIRS;
  let rows = pair_rows(first_pair + own_pair(lane));
  store_shares(first_pair, lane, share_of(rows, lane, first_pair == 0u));
}
