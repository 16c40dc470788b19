// Parts of the files blocks_*.c: what a block of 32 columns is, and how bits are unpacked.
//
// Such a file defines, and then includes block_rows.h:
//   HALVES, PAIRED    as in the shader of the same name
//   ADDS              whether anything is added to a value beside what CENTRE says
//   CENTRE            what is subtracted from a byte
//   SIGNED            whether bytes are signed; otherwise they are below 64
//   load_bytes        returns the 32 bytes of a row's block
//   half_affine       returns (scale, addend) of a half of a block
//   row_affine        computes those of a row's blocks, [blocks, HALVES] each; addends are unread without ADDS.
//                     A kind whose scales are computed for four rows at a time has rows_affine in its place, and
//                     defines OWN_ROWS_AFFINE.
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
  v128_t low = wasm_i8x16_swizzle((v128_t)table, (v128_t)at.low);
  return (Bytes){(u8x16)low, (u8x16)wasm_i8x16_swizzle((v128_t)table, (v128_t)at.high)};
}

// Bits of 32 columns in a word, bit 8k + w that of column 4w + k, as 0 or `unit` in each byte.
INLINE Bytes spread_bits(const u8 *word, u8 unit) {
  v128_t bits = wasm_v128_load32_splat(word);
  v128_t low = wasm_u32x4_const(0x01010101, 0x04040404, 0x10101010, 0x40404040);
  v128_t high = wasm_u32x4_const(0x02020202, 0x08080808, 0x20202020, 0x80808080);
  u8x16 low_set = (u8x16)wasm_i8x16_eq(wasm_v128_and(bits, low), low);
  u8x16 high_set = (u8x16)wasm_i8x16_eq(wasm_v128_and(bits, high), high);
  return (Bytes){low_set & unit, high_set & unit};
}

// 2-bit values of 32 columns in two words, bits 2v of byte k of a word those of column 4v + k, times 1 or 16.
INLINE Bytes spread_crumbs(const u8 *words, u32 unit) {
  v128_t both = wasm_v128_load64_splat(words);  // words 0, 1, 0, 1
  v128_t later = wasm_u32x4_shr(both, 4);
  u32x4 low = (u32x4)wasm_i32x4_shuffle(both, later, 0, 4, 1, 5);
  if (unit == 1) return (Bytes){(u8x16)low & 3, (u8x16)(low >> 2) & 3};
  return (Bytes){(u8x16)(low << 4) & 0x30, (u8x16)(low << 2) & 0x30};
}

// The bytes of columns 0 to 15, then of the others.
INLINE Bytes in_order(Bytes bytes, int paired) {
  v128_t low = (v128_t)bytes.low, high = (v128_t)bytes.high;
  if (paired) {
    return (Bytes){
        (u8x16)wasm_i8x16_shuffle(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
        (u8x16)wasm_i8x16_shuffle(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31),
    };
  }
  return (Bytes){(u8x16)wasm_i32x4_shuffle(low, high, 0, 4, 1, 5), (u8x16)wasm_i32x4_shuffle(low, high, 2, 6, 3, 7)};
}
