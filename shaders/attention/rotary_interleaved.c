// Rotary embedding of x: neighbouring dims are rotated by the angle of their token.
// x: [batches, tokens, width]; freqs: [rows, width], a cosine and a sine for each pair.

#include "attention/rotary_interleaved.wgsl.h"
#include "kernel.h"

KERNEL(attention_rotary_interleaved, 32) {
  const rotary_interleaved_params *params = PARAMS(rotary_interleaved);
  const f32 *x = BUFFER(const f32, x), *freqs = BUFFER(const f32, freqs);
  f32 *out = BUFFER(f32, out);
  u32 last = min_u32(share.last * WORKGROUP, params->pairs);
  for (u32 index = share.first * WORKGROUP; index < last;) {
    u32 from = index % params->batch_pairs;
    u32 count = min_u32(params->batch_pairs - from, last - index);
    const f32 *pairs = x + 2 * index, *angles = freqs + 2 * from;
    f32 *turned = out + 2 * index;
    u32 at = 0;
    for (; at + 2 <= count; at += 2) {  // two pairs
      f32x4 pair = load_f32x4(pairs + 2 * at), angle = load_f32x4(angles + 2 * at);
      f32x4 crossed = pair.yxwz * angle.yyww;
      crossed = (f32x4)((i32x4)crossed ^ (i32x4){1 << 31, 0, 1 << 31, 0});  // the first of a pair subtracts
      store_f32x4(turned + 2 * at, pair * angle.xxzz + crossed);
    }
    if (at < count) {
      f32 first = pairs[2 * at], second = pairs[2 * at + 1], cosine = angles[2 * at], sine = angles[2 * at + 1];
      turned[2 * at] = first * cosine - second * sine;
      turned[2 * at + 1] = first * sine + second * cosine;
    }
    index += count;
  }
}
