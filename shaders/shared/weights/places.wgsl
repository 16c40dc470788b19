// Where rows and columns lie in a weight. Some compilers of software adapters divide, and read a
// uniform, again wherever a loop says so: a kernel finds each place once and uses it many times.
// A file octets_* has `row_at` and `columns_at`.
// needs: nothing

struct Row {
  start: u32,  // of its values
  scale: u32,  // of its first group of columns
  scale_step: u32,  // to the scale of the next group
}

// And eight of its columns.
struct EightColumns {
  octet: u32,
  pair: u32,  // of octets that lie side by side
  odd: u32,  // whether it is the second of the two
  group: u32,  // that has a scale of its own
}

// Sixteen columns of a row: two octets that lie side by side.
struct Sixteen {
  low: mat2x4f,
  high: mat2x4f,
}
