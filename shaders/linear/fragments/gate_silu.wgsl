// The activation of SwiGLU.
// needs: nothing

fn gated(gate: f32, up: f32) -> f32 {
  return gate / (1.0 + exp(-gate)) * up;
}
