// Signed bytes of a word as halves, which hold them exactly, without a conversion: a byte put under the
// exponent of 1024 counts 1, and what it then is too large by is subtracted.
// needs: shared/halves

// The first and the third byte.
fn near_pair(word: u32) -> vec2h {
  return halves_of(((word ^ 0x80808080u) & 0x00ff00ffu) | 0x64006400u) - vec2h(1152.0);
}

// The second and the fourth.
fn far_pair(word: u32) -> vec2h {
  return near_pair(word >> 8u);
}
