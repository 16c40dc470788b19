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

// Computes the scales of a row's blocks, and returns what is added to its products in all.
static f32 prepare_row(const Matrix *matrix, u32 row, u32 blocks, const WholeToken *x, f32 *scales, f32 *addends) {
  u32 padded = padded_blocks(blocks) * HALVES;
  row_affine(matrix, row, blocks, scales, addends);
  if (!ADDS && CENTRE == 0) return 0.0f;
  for (u32 at = blocks * HALVES; at < padded; at++) scales[at] = addends[at] = 0.0f;
  const f32 *sums = HALVES == 2 ? x->half_sums : x->sums;
  f32x4 added = splat(0.0f);
  for (u32 at = 0; at < padded; at += 4) {
    f32x4 addend = -(f32)CENTRE * load_f32x4(scales + at);
    if (ADDS) addend += load_f32x4(addends + at);
    added = fma4(addend, load_f32x4(sums + at), added);
  }
  return sum_of(added);
}

INLINE f32x4 to_floats(i32x4 v) { return __builtin_convertvector(v, f32x4); }

// A block's scales, for lanes that are its octets.
INLINE f32x4 octet_scales(const f32 *scales) {
  if (HALVES == 1) return splat(scales[0]);
  v128_t both = wasm_v128_load64_zero(scales);
  return (f32x4)wasm_i32x4_shuffle(both, both, 0, 0, 1, 1);
}

// The products of a block in 16 bits: a lane has an octet. x: as in tokens.h.
INLINE i32x4 dot_wholes(Bytes bytes, const v128_t *x) {
  u16x8 low = (u16x8)bytes.low, high = (u16x8)bytes.high;
  if (SIGNED) {
    i16x8 odd_low = (i16x8)low >> 8, odd_high = (i16x8)high >> 8;
    i16x8 even_low = (i16x8)(low << 8) >> 8, even_high = (i16x8)(high << 8) >> 8;
    return (dot_i16(even_low, (i16x8)x[0]) + dot_i16(odd_low, (i16x8)x[1])) +
           (dot_i16(even_high, (i16x8)x[2]) + dot_i16(odd_high, (i16x8)x[3]));
  }
  return (dot_i16((i16x8)(low & 0xff), (i16x8)x[0]) + dot_i16((i16x8)(low >> 8), (i16x8)x[1])) +
         (dot_i16((i16x8)(high & 0xff), (i16x8)x[2]) + dot_i16((i16x8)(high >> 8), (i16x8)x[3]));
}

#ifdef __wasm_relaxed_simd__
INLINE i32x4 dot_bytes(v128_t x, u8x16 bytes, i32x4 sum) {
  return (i32x4)wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, (v128_t)bytes, (v128_t)sum);
}

// The same by planes of x.
INLINE i32x4 dot_planes(Bytes bytes, const v128_t *x) {
  i32x4 high = dot_bytes(x[1], bytes.high, dot_bytes(x[0], bytes.low, (i32x4){0, 0, 0, 0}));
  return dot_bytes(x[3], bytes.high, dot_bytes(x[2], bytes.low, high << 8));
}
#else
INLINE i32x4 dot_planes(Bytes bytes, const v128_t *x) { return dot_wholes(bytes, x); }  // never called
#endif

// Adds the products of four rows to partial sums. scales: [ROWS, stride].
INLINE void add_rows(
    const Matrix *matrix, const u32 *rows, const WholeToken *x, int by_planes, const f32 *scales, u32 stride,
    f32x4 *sums) {
  f32x4 parts[ROWS] = {sums[0], sums[1], sums[2], sums[3]};
  u32 own[ROWS] = {rows[0], rows[1], rows[2], rows[3]};
  for (u32 block = 0; block < matrix->octets / 4; block++) {
    v128_t columns[4];
    for (u32 at = 0; at < 4; at++) columns[at] = wasm_v128_load(x->columns + 64 * block + 16 * at);
    f32x4 of_x = load_f32x4(x->scales + 4 * block);
    for (u32 row = 0; row < ROWS; row++) {
      Bytes bytes = load_bytes(matrix, own[row], block);
      i32x4 dots = by_planes ? dot_planes(bytes, columns) : dot_wholes(bytes, columns);
      f32x4 factor = of_x * octet_scales(scales + row * stride + block * HALVES);
      parts[row] = fma4(to_floats(dots), factor, parts[row]);
    }
  }
  for (u32 row = 0; row < ROWS; row++) sums[row] = parts[row];
}

static void dot_rows(const Matrix *matrix, const u32 *rows, const WholeToken *x, f32 *room, f32 *sums) {
  u32 blocks = matrix->octets / 4;
  u32 stride = padded_blocks(blocks) * HALVES;
  f32x4 parts[ROWS];
  for (u32 at = 0; at < ROWS; at++) {
    f32 added = prepare_row(matrix, rows[at], blocks, x, room + at * stride, room + ROWS * stride);
    parts[at] = (f32x4){added, 0.0f, 0.0f, 0.0f};
  }
  if (has_byte_dots()) {
    add_rows(matrix, rows, x, 1, room, stride, parts);
  } else {
    add_rows(matrix, rows, x, 0, room, stride, parts);
  }
  for (u32 at = 0; at < ROWS; at++) sums[at] = sum_of(parts[at]);
}

#define BLOCK_WEIGHTS {dequantise, dot_rows, PAIRED}
