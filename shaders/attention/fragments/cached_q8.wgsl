// Blocks of 32 values in 10 bits each: how far they range and the least value, both f16, then the codes of values
// between these two: a word of the 8 high bits of four, two of all low bits. A byte of the latter has those of
// every eighth value.
// needs: nothing

const CACHED_WORDS = 11u;
const LARGEST_CACHED = 65504.0;  // of f16; what is larger becomes it
const STEPS_OF_CODE = 1023.0;

// Returns the words of a block.
fn cached_block(values: array<vec4f, 8>) -> array<u32, CACHED_WORDS> {
  var quads = values;
  var each_least = vec4f(LARGEST_CACHED);
  var each_top = vec4f(-LARGEST_CACHED);
  for (var quad = 0u; quad < 8u; quad++) {
    quads[quad] = clamp(quads[quad], vec4f(-LARGEST_CACHED), vec4f(LARGEST_CACHED));
    each_least = min(each_least, quads[quad]);
    each_top = max(each_top, quads[quad]);
  }
  let least = min(min(each_least.x, each_least.y), min(each_least.z, each_least.w));
  let top = max(max(each_top.x, each_top.y), max(each_top.z, each_top.w));
  var words = array<u32, CACHED_WORDS>();
  words[0] = pack2x16float(vec2f(min(top - least, LARGEST_CACHED), least));
  let held = unpack2x16float(words[0]);  // as they are read again
  let steps_of_value = STEPS_OF_CODE / max(held.x, 1e-30);
  for (var quad = 0u; quad < 8u; quad++) {
    let steps = round((quads[quad] - held.y) * steps_of_value);
    let codes = vec4u(clamp(steps, vec4f(), vec4f(STEPS_OF_CODE)));
    let high = (codes >> vec4u(2)) << vec4u(0, 8, 16, 24);
    let low = (codes & vec4u(3)) << vec4u(0, 8, 16, 24);
    words[cached_word(quad)] = high.x | high.y | high.z | high.w;
    words[cached_rest(quad)] |= (low.x | low.y | low.z | low.w) << (quad / 2u * 2u);
  }
  return words;
}

// The word of a block that has the high bits of a quad of its values.
fn cached_word(quad: u32) -> u32 {
  return 1u + quad;
}

// The word that has their low bits.
fn cached_rest(quad: u32) -> u32 {
  return 9u + quad % 2u;
}

// A quad of a block's values, from the block's first word and the ones that have it.
fn cached_quad(first: u32, word: u32, rest: u32, quad: u32) -> vec4f {
  let held = unpack2x16float(first);
  let high = (vec4u(word) >> vec4u(0, 8, 16, 24)) & vec4u(255);
  let low = (vec4u(rest >> (quad / 2u * 2u)) >> vec4u(0, 8, 16, 24)) & vec4u(3);
  return vec4f((high << vec4u(2)) | low) * (held.x / STEPS_OF_CODE) + held.y;
}
