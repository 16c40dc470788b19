// Tiles of query rows: what the kernels that attend, and those that put their splits together, know of them.
// needs: nothing

const TILE_ROWS = 4u;  // query rows that share a key and value head

// What a split leaves of a tile, beside its weighted sums.
struct Stats {
  top: vec4f,  // the largest score of each row
  sum: vec4f,  // of exp(score - top)
}

const MASKED = -2e30;  // below any score that is apply_mask; compilers may assume nothing is infinite

// A tile's rows are the columns; each has a factor of its own.
fn scale_columns(m: mat4x4f, by: vec4f) -> mat4x4f {
  return mat4x4f(m[0] * by.x, m[1] * by.y, m[2] * by.z, m[3] * by.w);
}
