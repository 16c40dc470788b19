// Tokens of x as split_planes.c leaves them for gemm_int8.c.
//
// Few tokens meet the weight's bytes as integers: the columns of an octet share a scale, and those of a block are
// laid out in the order of the bytes (blocks.h). Many tokens stay floats, for which a row of the weight is
// dequantised once.

#pragma once

#include "simd.h"

enum {
  FEW_TOKENS = 16,  // what one of them gets does not depend on how many there are
  TOKENS_AT_ONCE = 4,  // that share the unpacking of a weight's bytes
  TOP = 127 * 256,  // the largest column of an octet is scaled to this: both of its bytes are signed
};

// A token in integers. Arrays are as long as a multiple of four blocks.
typedef struct {
  // [blocks, 2, 32], where the machine has byte dots: the high bytes of columns, then the low ones. Otherwise
  // [blocks, 4, 8] of 16 bits: the columns of even low bytes, of odd low ones, of even high ones, of odd high ones.
  u8 *columns;
  f32 *scales;  // [blocks, 4], of octets
  f32 *sums;  // [blocks], of scaled columns
  f32 *half_sums;  // [blocks, 2]
} WholeToken;

enum { BLOCK_BYTES = 128 };  // that a block takes, in integers or floats

INLINE u32 padded_blocks(u32 blocks) { return (blocks + 3) & ~3u; }

INLINE u32 token_bytes(u32 blocks) { return BLOCK_BYTES * padded_blocks(blocks); }

INLINE WholeToken whole_token(void *tokens, u32 token, u32 blocks) {
  u32 padded = padded_blocks(blocks);
  u8 *first = (u8 *)tokens + token_bytes(blocks) * token;
  f32 *scales = (f32 *)(first + 64 * padded);
  return (WholeToken){first, scales, scales + 4 * padded, scales + 5 * padded};
}

// Quantises a token of 32 * blocks columns; each is multiplied by `norm` and `scale` first, unless `norm` is null.
void quantise_token(const f32 *x, const f32 *norm, f32 scale, u32 blocks, u32 paired, WholeToken to);

// Whether the machine multiplies bytes by bytes well: in one instruction, both signed. It does on ARM; elsewhere
// the second factor is taken as unsigned, or the instruction is made of several.
INLINE int has_byte_dots(void) {
#ifdef __wasm_relaxed_simd__
  static const volatile i8 minus_one = -1;
  v128_t bytes = wasm_i8x16_splat(minus_one);
  v128_t dots = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(bytes, bytes, wasm_i32x4_const_splat(0));
  return wasm_i32x4_extract_lane(dots, 0) == 4;
#else
  return 0;
#endif
}
