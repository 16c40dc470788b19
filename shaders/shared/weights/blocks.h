// Parts of the files blocks_*.c: what a block of 32 columns is, and how bits are unpacked.
//
// Such a file defines, and then includes block_rows.h:
//   HALVES, PAIRED    as in the shader of the same name
//   ADDS              whether anything is added to a value beside what CENTRE says
//   CENTRE            what is subtracted from a byte
//   SIGNED            whether bytes are signed; otherwise they are below 64
//   load_bytes        returns the 32 bytes of a row's block
//   half_affine       returns (scale, addend) of a half of a block
//   row_affine        computes those of a row's blocks, [blocks, HALVES] each; addends are unread without ADDS
// The value of a column is (byte - CENTRE) * scale + addend.

#pragma once

#include "shared/weights/weights.h"

// The bytes of 32 columns. With PAIRED `low` has the even columns and `high` the odd ones; otherwise `low` has
// the first four of every octet and `high` the others.
typedef struct {
  u8x16 low;
  u8x16 high;
} Bytes;

INLINE u8x16 load_bytes16(const u8 *at) { return (u8x16)wasm_v128_load(at); }
INLINE u32 load_word(const u8 *at) { return *(const u32 *)at; }
INLINE f32 load_half(const u8 *at) { return half_to_float(*(const u16 *)at); }

// 16 bytes of nibbles: the low ones, then the high ones.
INLINE Bytes nibbles(u8x16 both) { return (Bytes){both & 15, (u8x16)((u16x8)both >> 4) & 15}; }

INLINE Bytes looked_up(u8x16 table, Bytes at) {
  return (Bytes){(u8x16)wasm_i8x16_swizzle((v128_t)table, (v128_t)at.low), (u8x16)wasm_i8x16_swizzle((v128_t)table, (v128_t)at.high)};
}

// A word in each lane, shifted right by a step more in each.
INLINE u32x4 shifted(u32 word, u32 step) {
  return (u32x4){word, word >> step, word >> (2 * step), word >> (3 * step)};
}

// Bits of 32 columns in a word, bit 8k + w that of column 4w + k, as 0 or `unit` in each byte.
INLINE Bytes spread_bits(u32 bits, u8 unit) {
  u8x16 low = (u8x16)shifted(bits, 2), high = (u8x16)shifted(bits >> 1, 2);
  return (Bytes){(low & 1) * unit, (high & 1) * unit};
}

// 2-bit values of 32 columns in two words: bits 2v of byte k of a word are those of column 4v + k.
INLINE Bytes spread_crumbs(const u8 *words) {
  u32 first = load_word(words), second = load_word(words + 4);
  u32x4 low = {first, first >> 4, second, second >> 4};
  return (Bytes){(u8x16)low & 3, (u8x16)(low >> 2) & 3};
}
