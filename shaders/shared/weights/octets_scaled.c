// 4-bit and 8-bit weights with one f32 scale a row (qcs4w, qcs8w), and 4-bit weights with one a group of octets
// (q4gsw). Values are (nibble - 8) * scale, or byte * scale.

#include "shared/weights/octets.h"

// Four columns of two bytes, the even column of each in its low nibble or in its high one.
INLINE f32x4 four_nibbles(const u8 *bytes, u32 high_first) {
  u32 word = bytes[0] | bytes[1] << 8;
  if (high_first) word = (word & 0x0f0f) << 4 | (word >> 4 & 0x0f0f);
  i32x4 values = {(i32)(word & 15), (i32)(word >> 4 & 15), (i32)(word >> 8 & 15), (i32)(word >> 12)};
  return __builtin_convertvector(values - 8, f32x4);
}

static void dequantise_q4gsw(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out) {
  const u8 *bytes = matrix->weight + 4 * (row * matrix->octets + octet);
  u32x2 of_row = row_scales(matrix, row);
  u32 known = known_columns(matrix, octet, count);
  for (u32 at = 0; at < known; at += 4) {
    u32 group = (octet + at / 8) / matrix->octets_per_group;
    f32 scale = ((const f32 *)matrix->scales)[of_row.x + group * of_row.y];
    store_f32x4(out + at, four_nibbles(bytes + at / 2, matrix->high_first) * scale);
  }
  clear_columns(out, known, count);
}

static void dequantise_qcs4w(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out) {
  const u8 *bytes = matrix->weight + 2 * row * matrix->quads + 4 * octet;
  f32 scale = ((const f32 *)matrix->scales)[row];
  u32 known = known_columns(matrix, octet, count);
  for (u32 at = 0; at < known; at += 4) store_f32x4(out + at, four_nibbles(bytes + at / 2, 1) * scale);
  clear_columns(out, known, count);
}

static void dequantise_qcs8w(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out) {
  const u8 *bytes = matrix->weight + 4 * row * matrix->quads + 8 * octet;
  f32 scale = ((const f32 *)matrix->scales)[row];
  u32 known = known_columns(matrix, octet, count);
  for (u32 at = 0; at < known; at += 4) {
    v128_t wide = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(bytes + at));
    store_f32x4(out + at, (f32x4)wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(wide)) * scale);
  }
  clear_columns(out, known, count);
}

FRAGMENT(Weights, shared_weights_octets_q4gsw) = {dequantise_q4gsw, 0, 0};
FRAGMENT(Weights, shared_weights_octets_qcs4w) = {dequantise_qcs4w, 0, 0};
FRAGMENT(Weights, shared_weights_octets_qcs8w) = {dequantise_qcs8w, 0, 0};
