// Words of two halves, for arithmetic in f16.
// needs: nothing
enable f16;

fn halves_of(word: u32) -> vec2h {
  return bitcast<vec2h>(word);
}

fn word_of(halves: vec2h) -> u32 {
  return bitcast<u32>(halves);
}

fn sum_of_halves(halves: vec2h) -> f32 {
  return f32(halves.x) + f32(halves.y);
}
