// Nibbles that stand for values of a table, four signed bytes a word.
// needs: nothing

fn table_byte(entries: vec4u, word: u32, shift: u32) -> u32 {
  let nibble = word >> shift;
  let low = select(entries.x, entries.y, (nibble & 4u) != 0u);
  let high = select(entries.z, entries.w, (nibble & 4u) != 0u);
  let four = select(low, high, (nibble & 8u) != 0u);
  return (four >> (8u * (nibble & 3u))) & 0xffu;
}

// The values of every second nibble, from `start` on.
fn table_word(entries: vec4u, word: u32, start: u32) -> u32 {
  return table_byte(entries, word, start)
    | (table_byte(entries, word, start + 8u) << 8u)
    | (table_byte(entries, word, start + 16u) << 16u)
    | (table_byte(entries, word, start + 24u) << 24u);
}

// Those of the low nibbles, then those of the high ones.
fn table_bytes(entries: vec4u, word: u32) -> vec2u {
  return vec2u(table_word(entries, word, 0u), table_word(entries, word, 4u));
}

// -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113: of the types IQ4.
const NON_LINEAR = vec4u(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
