// Scores as they are.
// needs: nothing

fn scored(dots: vec4f) -> vec4f {
  return dots * params.scale;
}
