// The activation of gpt-oss: SwiGLU with clamped inputs, a steeper sigmoid, and up + 1.
// needs: nothing

const BOUND = 7.0;
const STEEPNESS = 1.702;

fn gated(gate: f32, up: f32) -> f32 {
  let low = min(gate, BOUND);
  return (clamp(up, -BOUND, BOUND) + 1.0) * low / (1.0 + exp(-STEEPNESS * low));
}
