// Places of rows and columns in a weight. Some compilers of software adapters repeat a division, and a read
// of a uniform, wherever a loop has them: a kernel computes each place once and uses it many times. A file
// octets_* has `row_at` and `columns_at`.
// needs: nothing

struct Row {
  start: u32,  // index of its values
  scale: u32,  // index of the scale of its first group of columns
  scale_step: u32,  // stride to the scale of the next group
}

// Eight columns of a row.
struct EightColumns {
  octet: u32,
  pair: u32,  // index of the pair of adjacent octets
  odd: u32,  // 1 for the second octet of the pair
  group: u32,  // index of the group that shares a scale
}

// Sixteen columns of a row: two adjacent octets.
struct Sixteen {
  low: mat2x4f,
  high: mat2x4f,
}
