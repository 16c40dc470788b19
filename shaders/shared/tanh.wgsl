// tanh, of one number or of four: the fragment that needs it says which, as WGSL has no generic functions.
// needs: @OneOrFour

// By one exponential that cannot overflow; small ones keep their digits by the series.
fn tanh_of(x: OneOrFour) -> OneOrFour {
  let square = x * x;
  let series = x * (1.0 + square * (-0.33333333 + square * (0.13333333 + square * (
    -0.05396825 + square * 0.021869488))));
  let small = exp(-2.0 * abs(x));
  let far = sign(x) * (1.0 - small) / (1.0 + small);
  return select(far, series, abs(x) < OneOrFour(0.25));
}
