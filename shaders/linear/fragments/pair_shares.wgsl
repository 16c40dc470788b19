// An invocation's shares of products with pairs of rows, for kernels of one token that take weights in blocks
// of 32 columns (gemv_int8.wgsl, gemv_f32.wgsl): which pair it has, and the reduction of all shares in the
// end.
// needs: linear/fragments/norm, linear/fragments/pair_tile, lanes = linear/fragments/pair_lanes_*, token = linear/fragments/token_*, epilogue = linear/fragments/epilogue_*

// An invocation's share of a pair's sums, and of the squares that the norm divides by.
struct Share {
  sums: vec2f,
  squares: f32,
}

// Facts of the octets of a tile, later squares. It stands behind all overrides: wgpu ends itself where an override
// follows such a size.
var<workgroup> octet_facts: array<vec2f, 4u * TILE>;

// Runs before the first column of x is read; `writes`: this workgroup stores x where it is a sum.
fn prepare_token(own: Invocation, writes: bool) {
  if (!SUMMED) {
    return;
  }
  put_down_squares(own, token_squares(own.lane, WORKGROUP));
  begin_token(added_squares(own), writes);
  workgroupBarrier();
}

// The invocation's pair, relative to the workgroup's first.
fn own_pair(lane: u32) -> u32 {
  return lane / ADJACENT % GROUP_PAIRS;
}

// The invocation's index among the PAIR_LANES.
fn own_member(lane: u32) -> u32 {
  return lane % ADJACENT + lane / (ADJACENT * GROUP_PAIRS) * ADJACENT;
}

fn store_shares(first_pair: u32, own: Invocation, share: Share) {
  put_down_sums(own, share.sums);
  if (NORMED) {
    put_down_squares(own, share.squares);
  } else {
    workgroupBarrier();
  }
  if (own.lane >= GROUP_PAIRS || first_pair + own.lane >= params.pairs) {
    return;
  }
  store_pair(0u, first_pair + own.lane, norm_scale(added_squares(own)) * added_sums(own.lane));
}
