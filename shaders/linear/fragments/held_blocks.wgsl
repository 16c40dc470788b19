// Blocks of a pair of rows as kernels of one token hold them in registers: loaded one step ahead.
// needs: linear/fragments/pair_tile, blocks = shared/weights/blocks_*

const MAX_UNROLL = 2u;

struct Held {
  upper: array<WeightBlock, MAX_UNROLL>,
  lower: array<WeightBlock, MAX_UNROLL>,
}

fn fetch(rows: vec2u, first: u32) -> Held {
  var held: Held;
  for (var step = 0u; step < UNROLL; step++) {
    let block = min(first + step * PAIR_LANES, params.shape.octets / 4u - 1u);  // x is zero past the end
    held.upper[step] = load_block(rows.x, block);
    held.lower[step] = load_block(rows.y, block);
  }
  return held;
}
