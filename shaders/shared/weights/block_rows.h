// What every kind of weights in blocks offers: see blocks.h for what stands above this include.

// Computes the values of a block in the order of columns.
static void dequantise_block(const Matrix *matrix, u32 row, u32 block, f32 *out) {
  Bytes bytes = load_bytes(matrix, row, block);
  u8 grouped[32];
  wasm_v128_store(grouped, (v128_t)bytes.low);
  wasm_v128_store(grouped + 16, (v128_t)bytes.high);
  for (u32 column = 0; column < 32; column++) {
    u32 at = PAIRED ? column / 2 + column % 2 * 16 : column / 8 * 4 + column % 4 + column / 4 % 2 * 16;
    f32x2 affine = half_affine(matrix, row, block, column * HALVES / 32);
    i32 byte = SIGNED ? (i8)grouped[at] : grouped[at];
    out[column] = (f32)(byte - CENTRE) * affine.x + affine.y;
  }
}

static void dequantise(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out) {
  f32 values[32];
  u32 known = ~0u;
  for (u32 at = octet; at < octet + count; at++, out += 8) {
    if (at / 4 != known) dequantise_block(matrix, row, known = at / 4, values);
    __builtin_memcpy(out, values + at % 4 * 8, 8 * sizeof(f32));
  }
}

enum { ROWS = 4 };  // that share the loads of x

// Computes the scales and addends of a row's blocks: [blocks, HALVES].
static void row_affine(const Matrix *matrix, u32 row, u32 blocks, f32 *scales, f32 *addends) {
  for (u32 block = 0; block < blocks; block++) {
    for (u32 half = 0; half < HALVES; half++) {
      f32x2 affine = half_affine(matrix, row, block, half);
      scales[block * HALVES + half] = affine.x;
      if (ADDS) addends[block * HALVES + half] = affine.y;
    }
  }
}

// Computes the factors of a row's integer sums, and returns what is added to them in all.
static f32 prepare_row(const Matrix *matrix, u32 row, u32 blocks, const WholeToken *x, f32 *factors, f32 *addends) {
  u32 padded = padded_blocks(blocks) * HALVES;
  row_affine(matrix, row, blocks, factors, addends);
  for (u32 at = blocks * HALVES; at < padded; at++) factors[at] = addends[at] = 0.0f;
  const f32 *sums = HALVES == 2 ? x->half_sums : x->sums;
  f32x4 added = splat(0.0f);
  for (u32 at = 0; at < padded; at += 4) {
    f32x4 scale = load_f32x4(factors + at);
    f32x4 of_x = HALVES == 2 ? (f32x4){x->scales[at / 2], x->scales[at / 2], x->scales[at / 2 + 1], x->scales[at / 2 + 1]}
                             : load_f32x4(x->scales + at);
    store_f32x4(factors + at, scale * of_x);
    f32x4 addend = ADDS ? load_f32x4(addends + at) - (f32)CENTRE * scale : -(f32)CENTRE * scale;
    if (ADDS || CENTRE > 0) added += addend * load_f32x4(sums + at);
  }
  return sum_of(added);
}

INLINE i16x8 low_half(u8x16 bytes) {
  return (i16x8)(SIGNED ? wasm_i16x8_extend_low_i8x16((v128_t)bytes) : wasm_u16x8_extend_low_u8x16((v128_t)bytes));
}

INLINE i16x8 high_half(u8x16 bytes) {
  return (i16x8)(SIGNED ? wasm_i16x8_extend_high_i8x16((v128_t)bytes) : wasm_u16x8_extend_high_u8x16((v128_t)bytes));
}

INLINE f32x4 to_floats(i32x4 v) { return __builtin_convertvector(v, f32x4); }

// Adds a block's products to four partial sums. x: the columns of `low`, then those of `high`.
INLINE f32x4 add_block(f32x4 sums, Bytes bytes, const i16x8 *x, const f32 *factors) {
  i32x4 first = dot_i16(low_half(bytes.low), x[0]) + dot_i16(low_half(bytes.high), x[2]);
  i32x4 second = dot_i16(high_half(bytes.low), x[1]) + dot_i16(high_half(bytes.high), x[3]);
  if (HALVES == 1) return fma4(to_floats(first + second), splat(factors[0]), sums);
  return fma4(to_floats(first), splat(factors[0]), fma4(to_floats(second), splat(factors[1]), sums));
}

#ifdef __wasm_relaxed_simd__
INLINE i32x4 dot_bytes(v128_t x, u8x16 bytes, i32x4 sum) {
  return (i32x4)wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, (v128_t)bytes, (v128_t)sum);
}

// The same by planes: the high bytes of both halves of x, then the low ones. A lane has the columns of an octet.
INLINE f32x4 add_block_by_planes(f32x4 sums, Bytes bytes, const v128_t *x, const f32 *factors) {
  i32x4 zero = {0, 0, 0, 0};
  i32x4 high = dot_bytes(x[1], bytes.high, dot_bytes(x[0], bytes.low, zero));
  i32x4 whole = dot_bytes(x[3], bytes.high, dot_bytes(x[2], bytes.low, high << 8));
  f32x4 factor = HALVES == 1 ? splat(factors[0]) : (f32x4){factors[0], factors[0], factors[1], factors[1]};
  return fma4(to_floats(whole), factor, sums);
}

static void dot_rows_by_planes(
    const Matrix *matrix, const u32 *rows, u32 blocks, const i8 *planes, const f32 *factors, u32 stride, f32x4 *parts) {
  f32x4 a = parts[0], b = parts[1], c = parts[2], d = parts[3];
  u32 r0 = rows[0], r1 = rows[1], r2 = rows[2], r3 = rows[3];
  for (u32 block = 0; block < blocks; block++, factors += HALVES) {
    v128_t x[4];
    for (u32 at = 0; at < 4; at++) x[at] = wasm_v128_load(planes + 64 * block + 16 * at);
    a = add_block_by_planes(a, load_bytes(matrix, r0, block), x, factors);
    b = add_block_by_planes(b, load_bytes(matrix, r1, block), x, factors + stride);
    c = add_block_by_planes(c, load_bytes(matrix, r2, block), x, factors + 2 * stride);
    d = add_block_by_planes(d, load_bytes(matrix, r3, block), x, factors + 3 * stride);
  }
  parts[0] = a, parts[1] = b, parts[2] = c, parts[3] = d;
}
#endif

static void dot_rows_by_wholes(
    const Matrix *matrix, const u32 *rows, u32 blocks, const i16 *wholes, const f32 *factors, u32 stride, f32x4 *parts) {
  f32x4 a = parts[0], b = parts[1], c = parts[2], d = parts[3];
  u32 r0 = rows[0], r1 = rows[1], r2 = rows[2], r3 = rows[3];
  for (u32 block = 0; block < blocks; block++, factors += HALVES) {
    i16x8 x[4];
    for (u32 at = 0; at < 4; at++) x[at] = (i16x8)wasm_v128_load(wholes + 32 * block + 8 * at);
    a = add_block(a, load_bytes(matrix, r0, block), x, factors);
    b = add_block(b, load_bytes(matrix, r1, block), x, factors + stride);
    c = add_block(c, load_bytes(matrix, r2, block), x, factors + 2 * stride);
    d = add_block(d, load_bytes(matrix, r3, block), x, factors + 3 * stride);
  }
  parts[0] = a, parts[1] = b, parts[2] = c, parts[3] = d;
}

static void dot_rows(const Matrix *matrix, const u32 *rows, const WholeToken *x, f32 *room, f32 *sums) {
  u32 blocks = matrix->octets / 4;
  u32 stride = padded_blocks(blocks) * HALVES;
  f32x4 parts[ROWS];
  f32 *addends = room + ROWS * stride;
  for (u32 at = 0; at < ROWS; at++) {
    f32 added = prepare_row(matrix, rows[at], blocks, x, room + at * stride, addends);
    parts[at] = (f32x4){added, 0.0f, 0.0f, 0.0f};
  }
#ifdef __wasm_relaxed_simd__
  if (has_byte_dots()) {
    dot_rows_by_planes(matrix, rows, blocks, x->planes, room, stride, parts);
  } else {
    dot_rows_by_wholes(matrix, rows, blocks, x->wholes, room, stride, parts);
  }
#else
  dot_rows_by_wholes(matrix, rows, blocks, x->wholes, room, stride, parts);
#endif
  for (u32 at = 0; at < ROWS; at++) sums[at] = sum_of(parts[at]);
}

#define BLOCK_WEIGHTS {dequantise, dot_rows, PAIRED}
