// Q3_K: (crumb | bit << 2) - 4, with 6-bit scales for 16 columns and an f16 for 256.
// weight: four vectors of crumbs, two of bits; scales: seven words for 512 columns, three, then the f16 of both
// halves, then three.

#include "shared/weights/blocks.h"

enum { HALVES = 2, PAIRED = 0, ADDS = 0, CENTRE = 4, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  const u8 *eight = matrix->weight + 96 * (row * (matrix->octets / 32) + block / 8);
  Bytes low = spread_crumbs(eight + 8 * (block % 8), 1);
  Bytes high = spread_bits(eight + 64 + 4 * (block % 8), 4);
  return (Bytes){low.low | high.low, low.high | high.high};
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  u32 eight = row * (matrix->octets / 32) + block / 8;
  u32 place = block % 8, byte = 16 * (place % 2) + 8 * half;
  const u8 *pair = matrix->scales + 28 * (eight / 2);
  const u8 *first = pair + 16 * (eight % 2);
  u32 low = load_word(first + 4 * (place % 4 / 2)) >> (byte + 4 * (place / 4)) & 15;
  u32 high = load_word(first + 8) >> (byte + 2 * (place / 2)) & 3;
  f32 scale = load_half(pair + 12 + 2 * (eight % 2));
  return (f32x2){scale * ((f32)(low | high << 4) - 32.0f), 0.0f};
}

#include "shared/weights/each_affine.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q3_k) = BLOCK_WEIGHTS;
