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

#define BLOCK_WEIGHTS {dequantise}
