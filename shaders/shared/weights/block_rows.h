// What every kind of weights in blocks offers: see blocks.h for what stands above this include.

// Computes 16 columns, which share a scale.
INLINE void dequantise_half(v128_t bytes, f32x2 affine, f32 *out) {
  v128_t centre = wasm_i16x8_const_splat(CENTRE);
  for (u32 at = 0; at < 2; at++) {
    v128_t wide = at ? (SIGNED ? wasm_i16x8_extend_high_i8x16(bytes) : wasm_u16x8_extend_high_u8x16(bytes))
                     : (SIGNED ? wasm_i16x8_extend_low_i8x16(bytes) : wasm_u16x8_extend_low_u8x16(bytes));
    wide = wasm_i16x8_sub(wide, centre);
    f32x4 first = (f32x4)wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(wide)) * affine.x;
    f32x4 second = (f32x4)wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(wide)) * affine.x;
    store_f32x4(out + 8 * at, ADDS ? first + affine.y : first);
    store_f32x4(out + 8 * at + 4, ADDS ? second + affine.y : second);
  }
}

// Computes the values of a block in the order of columns.
INLINE void dequantise_block(const Matrix *matrix, u32 row, u32 block, f32 *out) {
  Bytes bytes = in_order(load_bytes(matrix, row, block), PAIRED);
  f32x2 first = half_affine(matrix, row, block, 0);
  dequantise_half((v128_t)bytes.low, first, out);
  dequantise_half((v128_t)bytes.high, HALVES == 2 ? half_affine(matrix, row, block, 1) : first, out + 16);
}

static void dequantise(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out) {
  if (octet % 4 == 0 && count % 4 == 0) {
    u32 end = (octet + count) / 4;
    for (u32 block = octet / 4; block < end; block++, out += 32) dequantise_block(matrix, row, block, out);
    return;
  }
  f32 values[32];
  u32 known = ~0u;
  for (u32 at = octet; at < octet + count; at++, out += 8) {
    if (at / 4 != known) dequantise_block(matrix, row, known = at / 4, values);
    __builtin_memcpy(out, values + at % 4 * 8, 8 * sizeof(f32));
  }
}

enum { ROWS = 4 };  // that share the loads of x

INLINE f32x4 to_floats(i32x4 v) { return __builtin_convertvector(v, f32x4); }

// The bytes of a block in 16 bits, as they meet columns of x.
typedef struct {
  i16x8 even_low, odd_low, even_high, odd_high;
} Wholes;

INLINE Wholes wholes_of(Bytes bytes) {
  u16x8 low = (u16x8)bytes.low, high = (u16x8)bytes.high;
  if (SIGNED) {
    return (Wholes){(i16x8)(low << 8) >> 8, (i16x8)low >> 8, (i16x8)(high << 8) >> 8, (i16x8)high >> 8};
  }
  return (Wholes){(i16x8)(low & 0xff), (i16x8)(low >> 8), (i16x8)(high & 0xff), (i16x8)(high >> 8)};
}

// Their products: a lane has an octet. x: as in tokens.h.
INLINE i32x4 dot_wholes(Wholes own, const u8 *x) {
  return (dot_i16(own.even_low, (i16x8)wasm_v128_load(x)) + dot_i16(own.odd_low, (i16x8)wasm_v128_load(x + 16))) +
         (dot_i16(own.even_high, (i16x8)wasm_v128_load(x + 32)) + dot_i16(own.odd_high, (i16x8)wasm_v128_load(x + 48)));
}

#ifdef __wasm_relaxed_simd__
INLINE i32x4 dot_bytes(v128_t x, u8x16 bytes, i32x4 sum) {
  return (i32x4)wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, (v128_t)bytes, (v128_t)sum);
}

// The same by planes of x.
INLINE i32x4 dot_planes(Bytes bytes, const u8 *x) {
  i32x4 none = {0, 0, 0, 0};
  i32x4 high = dot_bytes(wasm_v128_load(x + 16), bytes.high, dot_bytes(wasm_v128_load(x), bytes.low, none));
  return dot_bytes(wasm_v128_load(x + 48), bytes.high, dot_bytes(wasm_v128_load(x + 32), bytes.low, high << 8));
}
#else
INLINE i32x4 dot_planes(Bytes bytes, const u8 *x) { return dot_wholes(wholes_of(bytes), x); }  // never called
#endif

// Transposes four values of each of four rows.
INLINE void transpose(const f32 *rows, u32 stride, f32 *out) {
  f32x4 a = load_f32x4(rows), b = load_f32x4(rows + stride);
  f32x4 c = load_f32x4(rows + 2 * stride), d = load_f32x4(rows + 3 * stride);
  f32x4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  f32x4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store_f32x4(out, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store_f32x4(out + 4, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store_f32x4(out + 8, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store_f32x4(out + 12, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

#ifndef OWN_ROWS_AFFINE
// Computes the scales of four rows, [blocks, HALVES, ROWS], and what is added to their products with each token in
// all. sums: [tokens] of [blocks, HALVES], of x.
INLINE void rows_affine(
    const Matrix *matrix, const u32 *rows, u32 blocks, const f32 *const *sums, u32 tokens, f32 *scales, f32x4 *added) {
  u32 stride = padded_blocks(blocks) * HALVES;
  f32 *own = scales + ROWS * stride, *own_addends = own + ROWS * stride;
  for (u32 row = 0; row < ROWS; row++) {
    row_affine(matrix, rows[row], blocks, own + row * stride, own_addends + row * stride);
  }
  for (u32 at = 0; at < stride; at += 4) {
    f32 addends[4 * ROWS];
    transpose(own + at, stride, scales + ROWS * at);
    if (ADDS) transpose(own_addends + at, stride, addends);
    for (u32 each = 0; each < 4 && at + each < blocks * HALVES && (ADDS || CENTRE > 0); each++) {
      f32x4 addend = -(f32)CENTRE * load_f32x4(scales + ROWS * (at + each));
      if (ADDS) addend += load_f32x4(addends + ROWS * each);
      UNROLLED for (u32 token = 0; token < tokens; token++) {
        added[token] = fma4(addend, splat(sums[token][at + each]), added[token]);
      }
    }
  }
}
#endif

// Adds the products of `count` of four rows, from `row` on, with some tokens: of so many, sums stay in registers. What
// a token gets depends on no other. scales: [blocks, HALVES, ROWS]; sums: [tokens], of four rows.
INLINE void multiply_rows(
    const Matrix *matrix, const u32 *rows, u32 row, u32 count, const WholeToken *x, u32 tokens, int by_planes,
    const f32 *scales, f32x4 *sums) {
  f32x4 parts[TOKENS_AT_ONCE][ROWS];
  UNROLLED for (u32 token = 0; token < tokens; token++) {
    UNROLLED for (u32 r = row; r < row + count; r++) parts[token][r] = splat(0.0f);
  }
  for (u32 block = 0; block < matrix->octets / 4; block++, scales += HALVES * ROWS) {
    f32x4 first = load_f32x4(scales), second = HALVES == 2 ? load_f32x4(scales + ROWS) : first;
    UNROLLED for (u32 r = row; r < row + count; r++) {
      Bytes bytes = load_bytes(matrix, rows[r], block);
      Wholes wholes = wholes_of(bytes);
      f32x4 of_row = {first[r], first[r], second[r], second[r]};  // of octets
      UNROLLED for (u32 token = 0; token < tokens; token++) {
        const u8 *columns = x[token].columns + 64 * block;
        i32x4 dots = by_planes ? dot_planes(bytes, columns) : dot_wholes(wholes, columns);
        f32x4 of_x = load_f32x4(x[token].scales + 4 * block);
        parts[token][r] = fma4(to_floats(dots), of_x * of_row, parts[token][r]);
      }
    }
  }
  UNROLLED for (u32 token = 0; token < tokens; token++) {
    UNROLLED for (u32 r = row; r < row + count; r++) sums[token][r] = sum_of(parts[token][r]);
  }
}

INLINE void dot_tokens(
    const Matrix *matrix, const u32 *rows, const WholeToken *x, u32 tokens, f32 *room, f32 *sums, u32 stride) {
  const f32 *of_columns[TOKENS_AT_ONCE];
  f32x4 added[TOKENS_AT_ONCE], products[TOKENS_AT_ONCE];
  u32 own[ROWS] = {rows[0], rows[1], rows[2], rows[3]};
  UNROLLED for (u32 token = 0; token < tokens; token++) {
    of_columns[token] = HALVES == 2 ? x[token].half_sums : x[token].sums;
    added[token] = splat(0.0f);
  }
  rows_affine(matrix, own, matrix->octets / 4, of_columns, tokens, room, added);
  u32 count = ROWS / tokens;  // whose sums stay in registers, together with bytes
  int by_planes = has_byte_dots();
  UNROLLED for (u32 row = 0; row < ROWS; row += count) {
    if (by_planes) {
      multiply_rows(matrix, own, row, count, x, tokens, 1, room, products);
    } else {
      multiply_rows(matrix, own, row, count, x, tokens, 0, room, products);
    }
  }
  UNROLLED for (u32 token = 0; token < tokens; token++) store_f32x4(sums + token * stride, products[token] + added[token]);
}

static void dot_rows(
    const Matrix *matrix, const u32 *rows, const WholeToken *x, u32 tokens, f32 *room, f32 *sums, u32 stride) {
  if (tokens == 1) dot_tokens(matrix, rows, x, 1, room, sums, stride);
  if (tokens == 2) dot_tokens(matrix, rows, x, 2, room, sums, stride);
  if (tokens == 4) dot_tokens(matrix, rows, x, 4, room, sums, stride);
}

#define BLOCK_WEIGHTS {dequantise, dot_rows, PAIRED}
