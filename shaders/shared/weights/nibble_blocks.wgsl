// Blocks of 4-bit values.
// needs: @word_values, @Columns

fn nibbles_dot(words: vec4u, columns: Columns) -> f32 {
  let a = word_values(words.x);
  let b = word_values(words.y);
  let c = word_values(words.z);
  let d = word_values(words.w);
  return dot(a[0], columns.low[0]) + dot(a[1], columns.low[1])
    + dot(b[0], columns.low[2]) + dot(b[1], columns.low[3])
    + dot(c[0], columns.high[0]) + dot(c[1], columns.high[1])
    + dot(d[0], columns.high[2]) + dot(d[1], columns.high[3]);
}
