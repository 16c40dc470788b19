// Scores without a cap.
// needs: nothing

fn scored(dots: vec4f) -> vec4f {
  return dots * params.scale;
}
