// MXFP4: 4-bit floats, times a power of two. Bytes count halves, and are raised by 12.
// scales: exponents, a byte a block, from 2^-127 to 2^127.

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 0, ADDS = 0, CENTRE = 12, SIGNED = 0 };

static const u8 RAISED[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  Bytes places = nibbles(load_bytes16(matrix->weight + 16 * (row * (matrix->octets / 4) + block)));
  return looked_up(load_bytes16(RAISED), places);
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  u32 exponent = matrix->scales[row * (matrix->octets / 4) + block];
  return (f32x2){exponent > 1 ? as_float((exponent - 1) << 23) : as_float(0x200000u << exponent), 0.0f};
}

#include "shared/weights/each_affine.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_mxfp4) = BLOCK_WEIGHTS;
