// One token as it lies in memory.
// needs: linear/fragments/x

const SUMMED = false;

// This token needs no sum of squares before it is read.
fn token_squares(first: u32, step: u32) -> f32 {
  return 0.0;
}

fn begin_token(squares: f32, writes: bool) {
}

fn token_octet(octet: u32) -> mat2x4f {
  return x_octet(0u, octet);
}
