// Tiles of query rows, as known to the kernels that attend and to those that reduce splits.
// needs: nothing

const TILE_ROWS = 4u;  // query rows that share a key and value head

// The softmax statistics of a tile in one split.
struct Stats {
  top: vec4f,  // the largest score of each row
  sum: vec4f,  // of exp(score - top)
}

const MASKED = -2e30;  // the score of a masked position: finite, as compilers may assume no infinities

// Scales each column, which is a row of the tile, by its own factor.
fn scale_columns(m: mat4x4f, by: vec4f) -> mat4x4f {
  return mat4x4f(m[0] * by.x, m[1] * by.y, m[2] * by.z, m[3] * by.w);
}
