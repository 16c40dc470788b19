// Scores that near `softcap` and never reach it: softcap * tanh(score / softcap).
// needs: nothing

// tanh by one exponential that cannot overflow; small ones keep their digits by the series.
fn bent(x: vec4f) -> vec4f {
  let square = x * x;
  let series = x * (1.0 + square * (-0.33333333 + square * (0.13333333 + square * (
    -0.05396825 + square * 0.021869488))));
  let small = exp(-2.0 * abs(x));
  let far = sign(x) * (1.0 - small) / (1.0 + small);
  return select(far, series, abs(x) < vec4f(0.25));
}

fn scored(dots: vec4f) -> vec4f {
  return params.softcap * bent(dots * (params.scale / params.softcap));
}
