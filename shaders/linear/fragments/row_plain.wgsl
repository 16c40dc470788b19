// The one line of x as it lies in memory.
// needs: linear/fragments/x

const SUMMED = false;

// This invocation's share of what begin_row wants, and what it leaves.
fn row_squares(first: u32, step: u32) -> f32 {
  return 0.0;
}

fn begin_row(squares: f32, writes: bool) {
}

fn row_octet(octet: u32) -> mat2x4f {
  return x_octet(0u, octet);
}
