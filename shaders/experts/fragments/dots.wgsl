// Dot products of a token with single rows of a weight. A few neighbours share a row: each takes every
// eighth pair of octets.
// needs: linear/fragments/x, shared/octets, weight = shared/weights/octets_*

const WORKGROUP = 64u;
const SHARERS = 8u;

// Computes this invocation's share of the sum. An octet past the end is clamped: x is zero there.
fn share_of_dot(at: u32, token: u32, lane: u32) -> f32 {
  let row = row_at(at);
  var sum = 0.0;
  for (var pair = lane % SHARERS; 2u * pair < params.shape.octets; pair += SHARERS) {
    let low = x_octet(token, 2u * pair);
    let high = x_octet(token, 2u * pair + 1u);
    let low_columns = columns_at(2u * pair);
    let high_columns = columns_at(min(2u * pair + 1u, params.shape.octets - 1u));
    let weights = sixteen(row, low_columns, high_columns);
    let first = affine(row, low_columns);
    let second = affine(row, high_columns);
    let dots = UNIT * vec2f(octet_dot(weights.low, low), octet_dot(weights.high, high));
    sum += first.x * dots.x + first.y * octet_sum(low) + second.x * dots.y + second.y * octet_sum(high);
  }
  return sum;
}
