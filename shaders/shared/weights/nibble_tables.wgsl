// Nibbles that are indices into a table of signed bytes.
// needs: nothing

// -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113: the table of the IQ4 types, four a word.
const NON_LINEAR = vec4u(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);

fn table_byte(word: u32, shift: u32) -> u32 {
  let nibble = word >> shift;
  let low = select(NON_LINEAR.x, NON_LINEAR.y, (nibble & 4u) != 0u);
  let high = select(NON_LINEAR.z, NON_LINEAR.w, (nibble & 4u) != 0u);
  let four = select(low, high, (nibble & 8u) != 0u);
  return (four >> (8u * (nibble & 3u))) & 0xffu;
}

// The values of every second nibble, from `start` on.
fn table_word(word: u32, start: u32) -> u32 {
  return table_byte(word, start)
    | (table_byte(word, start + 8u) << 8u)
    | (table_byte(word, start + 16u) << 16u)
    | (table_byte(word, start + 24u) << 24u);
}

// The values of the low nibbles, then those of the high ones.
fn table_bytes(word: u32) -> vec2u {
  return vec2u(table_word(word, 0u), table_word(word, 4u));
}
