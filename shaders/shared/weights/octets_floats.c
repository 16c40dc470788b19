// Weights in f32, f16 and bf16, K / 4 vectors a row.

#include "shared/weights/octets.h"

static void dequantise_f32(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out) {
  const f32 *values = (const f32 *)matrix->weight + 4 * row * matrix->quads;
  u32 known = known_columns(matrix, octet, count);
  __builtin_memcpy(out, values + 8 * octet, known * sizeof(f32));
  clear_columns(out, known, count);
}

static void dequantise_f16(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out) {
  const u16 *values = (const u16 *)matrix->weight + 4 * row * matrix->quads + 8 * octet;
  u32 known = known_columns(matrix, octet, count);
  for (u32 at = 0; at < known; at += 4) store_f32x4(out + at, halves_to_floats(values + at));
  clear_columns(out, known, count);
}

static void dequantise_bf16(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out) {
  const u16 *values = (const u16 *)matrix->weight + 4 * row * matrix->quads + 8 * octet;
  u32 known = known_columns(matrix, octet, count);
  for (u32 at = 0; at < known; at += 4) {
    store_f32x4(out + at, (f32x4)wasm_i32x4_shl(wasm_u32x4_load16x4(values + at), 16));
  }
  clear_columns(out, known, count);
}

FRAGMENT(Weights, shared_weights_octets_f32) = {dequantise_f32, 0, 0};
FRAGMENT(Weights, shared_weights_octets_f16) = {dequantise_f16, 0, 0};
FRAGMENT(Weights, shared_weights_octets_bf16) = {dequantise_bf16, 0, 0};
