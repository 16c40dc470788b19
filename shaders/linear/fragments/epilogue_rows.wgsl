// The epilogue of independent rows: a pair is two neighbours, of which each is stored by itself. The last
// pair may have one row only.
// needs: output = linear/fragments/output_*

fn pair_rows(pair: u32) -> vec2u {
  return min(vec2u(2u * pair, 2u * pair + 1u), vec2u(params.rows - 1u));
}

fn store_pair(token: u32, pair: u32, sums: vec2f) {
  store(token, 2u * pair, sums.x);
  if (2u * pair + 1u < params.rows) {
    store(token, 2u * pair + 1u, sums.y);
  }
}
