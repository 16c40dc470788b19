// The plain read that decoding is held against: sums 64 bytes a step, nothing else.

#include <wasm_simd128.h>

__attribute__((export_name("read"))) int read(const v128_t *from, unsigned bytes) {
  v128_t sums[4] = {0};
  for (unsigned at = 0; at < bytes / 16; at += 4) {
    for (int lane = 0; lane < 4; lane++) sums[lane] = wasm_i32x4_add(sums[lane], from[at + lane]);
  }
  const v128_t sum = wasm_i32x4_add(wasm_i32x4_add(sums[0], sums[1]), wasm_i32x4_add(sums[2], sums[3]));
  return wasm_i32x4_extract_lane(sum, 0) + wasm_i32x4_extract_lane(sum, 1) + wasm_i32x4_extract_lane(sum, 2) + wasm_i32x4_extract_lane(sum, 3);
}
