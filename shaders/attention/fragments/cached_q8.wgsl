// Blocks of 32 values in 8 bits each: the largest magnitude as f32, then each value as a share of it, in
// 127ths, four in a word.
// needs: nothing

const CACHED_WORDS = 9u;
const LARGEST_CACHED = 3.4e38;  // infinities become it

// Returns the words of a block.
fn cached_block(values: array<vec4f, 8>) -> array<u32, CACHED_WORDS> {
  var quads = values;
  var each = vec4f();
  for (var quad = 0u; quad < 8u; quad++) {
    each = max(each, abs(quads[quad]));
  }
  let top = min(max(max(each.x, each.y), max(each.z, each.w)), LARGEST_CACHED);
  var words = array<u32, CACHED_WORDS>();
  words[0] = bitcast<u32>(top);
  for (var quad = 0u; quad < 8u; quad++) {
    words[1u + quad] = pack4x8snorm(quads[quad] / max(top, 1e-30));
  }
  return words;
}

// The word of a block that has a quad of its values.
fn cached_word(quad: u32) -> u32 {
  return 1u + quad;
}

// A quad of a block's values, from the block's first word and the one that has it.
fn cached_quad(first: u32, word: u32, quad: u32) -> vec4f {
  return unpack4x8snorm(word) * bitcast<f32>(first);
}
