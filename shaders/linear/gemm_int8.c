// Products with weights in blocks: few tokens are multiplied as integers, many as floats. See tokens.h.

#include "linear/products.h"
#include "linear/tokens.h"

KERNEL(linear_gemm_int8, 1) {
  const ProductParams *params = call->buffers[BINDING_params];
  const Weights *kind = PLUG(Weights, blocks);
  u32 tokens = params->shape.tokens;
  if (tokens > FEW_TOKENS) {
    multiply_floats(call, share, kind, BUFFER(const f32, x));
    return;
  }
  Matrix matrix = linear_matrix(&params->shape, BUFFER(const u8, weight), BUFFER(const u8, scales));
  f32 *room = scratch_of(share.thread);
  for (u32 group = share.first; group < share.last; group++) {
    Pairs pairs = pairs_of(call, group);
    for (u32 token = 0; token < tokens; token += TOKENS_AT_ONCE) {
      u32 count = min_u32(TOKENS_AT_ONCE, tokens - token), filled = count == 3 ? 4 : count;
      WholeToken x[TOKENS_AT_ONCE];  // the last one twice in place of three
      for (u32 at = 0; at < filled; at++) {
        x[at] = whole_token(BUFFER(void, x), token + min_u32(at, count - 1), matrix.octets / 4);
      }
      f32 sums[TOKENS_AT_ONCE][2 * MAX_PAIRS];
      for (u32 at = 0; at < 2 * rows_of_each(pairs.count); at += TILE) {
        kind->dot_rows(&matrix, pairs.rows + at, x, filled, room, sums[0] + at, 2 * MAX_PAIRS);
      }
      for (u32 at = 0; pairs.count && at < count; at++) store_sums(call, &pairs, token + at, sums[at]);
    }
  }
}
