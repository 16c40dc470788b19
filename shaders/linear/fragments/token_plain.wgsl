// The one token of x as it lies in memory.
// needs: linear/fragments/x

const SUMMED = false;

// This invocation's share of what begin_token wants, and what it leaves.
fn token_squares(first: u32, step: u32) -> f32 {
  return 0.0;
}

fn begin_token(squares: f32, writes: bool) {
}

fn token_octet(octet: u32) -> mat2x4f {
  return x_octet(0u, octet);
}
