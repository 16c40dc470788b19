// Scores as they are.
// needs: attention/fragments/io

fn scored(dots: vec4f) -> vec4f {
  return dots * params.scale;
}
