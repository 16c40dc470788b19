// Scores with a soft cap: softcap * tanh(score / softcap).
// needs: shared/tanh

alias OneOrFour = vec4f;  // the type of tanh_of

fn scored(dots: vec4f) -> vec4f {
  return params.softcap * tanh_of(dots * (params.scale / params.softcap));
}
