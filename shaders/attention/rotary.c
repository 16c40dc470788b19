// Rotary embedding of q and k: pairs of dims are rotated by the angle of their token's position.
// xq: [batches, tokens, q_heads, width]; xk: [batches, tokens, k_heads, width]; tables: [rows, table_width].

#include <stdbool.h>  // for the shader's struct

#include "attention/rotary.wgsl.h"
#include "attention/rotary.h"
#include "kernel.h"

// Rotates the pairs first to last (exclusive) of a tensor and copies those that only pass through.
static void turn_tensor(const Call *call, const f32 *x, f32 *out, u32 heads, u32 first, u32 last) {
  const rotary_params *params = PARAMS(rotary);
  u32 start = (u32)*BUFFER(const i32, start_pos);
  Pairs pairs = {params->pair_step, params->pair_gap, params->column_gap};
  u32 head_pairs = params->width / 2, turning = params->rotated / 2;
  for (u32 index = first; index < last;) {
    u32 head_row = index / head_pairs;  // over batches, tokens and heads
    u32 from = index % head_pairs, to = min_u32(head_pairs, from + (last - index));
    u32 row = start + head_row / heads % params->tokens;
    const f32 *cosines = BUFFER(const f32, cos_table) + row * params->table_width;
    const f32 *sines = BUFFER(const f32, sin_table) + row * params->table_width;
    const f32 *from_head = x + head_row * params->width;
    f32 *to_head = out + head_row * params->width;
    turn_pairs(pairs, from, min_u32(to, turning), from_head, to_head, cosines, sines);
    for (u32 dim = 2 * max_u32(from, turning); dim < 2 * to; dim++) to_head[dim] = from_head[dim];
    index += to - from;
  }
}

KERNEL(attention_rotary, 16) {
  const rotary_params *params = PARAMS(rotary);
  u32 first = share.first * WORKGROUP, last = share.last * WORKGROUP;  // of the pairs of q, then of k
  u32 q_last = min_u32(last, params->q_pairs);
  turn_tensor(call, BUFFER(const f32, xq), BUFFER(f32, xq_out), params->q_heads, first, q_last);
  u32 k_first = max_u32(first, params->q_pairs) - params->q_pairs;
  u32 k_last = min_u32(max_u32(last, params->q_pairs) - params->q_pairs, params->k_pairs);
  turn_tensor(call, BUFFER(const f32, xk), BUFFER(f32, xk_out), params->k_heads, k_first, k_last);
}
