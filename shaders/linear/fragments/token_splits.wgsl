// One token as attention over a long context leaves it: in splits, which are reduced as they are read
// (attention/reduce_wide.wgsl does so for all other readers).
// needs: attention/fragments/tiles, sinks = attention/fragments/sinks_*

const SUMMED = false;

override SPLITS: u32 = 16u;
override HEAD_QUADS: u32 = 16u;  // a head's width / 4
override GROUP: u32 = 4u;  // query heads that share a key and value head
override HEAD_TILES: u32 = (GROUP + TILE_ROWS - 1u) / TILE_ROWS;

@group(0) @binding(0) var<storage, read> sums: array<mat4x4f>;  // [SPLITS, heads, HEAD_TILES, HEAD_QUADS]
@group(0) @binding(1) var<storage, read> stats: array<Stats>;  // [SPLITS, heads, HEAD_TILES]

fn token_squares(first: u32, step: u32) -> f32 {
  return 0.0;
}

fn begin_token(squares: f32, writes: bool) {
}

// Eight columns of x, which belong to one head.
fn token_octet(octet: u32) -> mat2x4f {
  let head = 2u * octet / HEAD_QUADS;
  let quad = 2u * octet % HEAD_QUADS;
  let row = head % GROUP % TILE_ROWS;
  let tiles = params.shape.quads / (HEAD_QUADS * GROUP) * HEAD_TILES;
  let tile = head / GROUP * HEAD_TILES + head % GROUP / TILE_ROWS;
  var top = MASKED;
  for (var split = 0u; split < SPLITS; split++) {
    top = max(top, stats[split * tiles + tile].top[row]);
  }
  var sum = 0.0;
  var values = mat2x4f();
  for (var split = 0u; split < SPLITS; split++) {
    let at = split * tiles + tile;
    let worth = exp(stats[at].top[row] - top);
    sum += worth * stats[at].sum[row];
    let first = at * HEAD_QUADS + quad;
    values += worth * mat2x4f(sums[first][row], sums[first + 1u][row]);
  }
  let whole = with_sinks(vec4f(sum), vec4f(top), vec4u(head)).x;
  return values * (1.0 / max(whole, 1e-30));
}
