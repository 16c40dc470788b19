// Blocks of 32 values in 4 bits each: the step between codes and the least value, both f16, then the codes.
// Bytes hold those of two values, the first half of the block in their low bits.
// needs: nothing

const CACHED_WORDS = 5u;
const LARGEST_CACHED = 65504.0;  // of f16; what is larger becomes it
const STEPS_OF_CODE = 15.0;

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
  words[0] = pack2x16float(vec2f((top - least) / STEPS_OF_CODE, least));
  let held = unpack2x16float(words[0]);  // as they are read again
  for (var quad = 0u; quad < 8u; quad++) {
    let steps = round((quads[quad] - held.y) / max(held.x, 1e-30));
    let codes = vec4u(clamp(steps, vec4f(), vec4f(STEPS_OF_CODE))) << vec4u(0, 8, 16, 24);
    words[cached_word(quad)] |= (codes.x | codes.y | codes.z | codes.w) << (quad / 4u * 4u);
  }
  return words;
}

// The word of a block that has a quad of its values.
fn cached_word(quad: u32) -> u32 {
  return 1u + quad % 4u;
}

// There is no more of it.
fn cached_rest(quad: u32) -> u32 {
  return 0u;
}

// A quad of a block's values, from the block's first word and the one that has it.
fn cached_quad(first: u32, word: u32, rest: u32, quad: u32) -> vec4f {
  let held = unpack2x16float(first);
  let codes = vec4u(word >> (quad / 4u * 4u)) >> vec4u(0, 8, 16, 24);
  return vec4f(codes & vec4u(15)) * held.x + held.y;
}
