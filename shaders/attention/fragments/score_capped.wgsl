// Scores that near `softcap` and never reach it: softcap * tanh(score / softcap).
// needs: shared/tanh

alias OneOrFour = vec4f;  // what tanh_of takes

fn scored(dots: vec4f) -> vec4f {
  return params.softcap * tanh_of(dots * (params.scale / params.softcap));
}
