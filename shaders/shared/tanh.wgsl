// tanh of one number or of four: the file that needs it defines the type, as WGSL has no generic functions.
// needs: @OneOrFour

// Uses one exponential that cannot overflow; for small x a series keeps the precision.
fn tanh_of(x: OneOrFour) -> OneOrFour {
  let square = x * x;
  let series = x * (1.0 + square * (-0.33333333 + square * (0.13333333 + square * (
    -0.05396825 + square * 0.021869488))));
  let small = exp(-2.0 * abs(x));
  let far = sign(x) * (1.0 - small) / (1.0 + small);
  return select(far, series, abs(x) < OneOrFour(0.25));
}
