// What the kernels that attend leave for those that put their splits together.
// needs: nothing

const TILE_ROWS = 4u;  // query rows that share a key and value head

struct Stats {
  top: vec4f,  // the largest score of each row
  sum: vec4f,  // of exp(score - top)
}

const UNSEEN = -2e30;  // below any score that is seen; compilers may assume nothing is infinite
