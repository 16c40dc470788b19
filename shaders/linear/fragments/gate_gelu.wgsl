// The activation of GeGLU, by the tanh approximation: 0.5 (1 + tanh u) is 1 / (1 + exp(-2u)).
// needs: nothing

fn gated(gate: f32, up: f32) -> f32 {
  let twice = 1.5957691 * (gate + 0.044715 * gate * gate * gate);
  return gate / (1.0 + exp(min(-twice, 80.0))) * up;  // beyond 80 the result is zero in f32
}
