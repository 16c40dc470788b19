// The epilogue of q, k and v after a linear: heads are normalised, if they have a norm, rotated and stored.
// qkv: [tokens, q_heads + 2 * kv_heads, width]; q_norm, k_norm: [width], or as long as all heads of q, or of
// k, where these are normalised together.

#include "attention/qkv_heads.wgsl.h"
#include "attention/qkv_store.h"
#include "attention/rotary.h"
#include "maths.h"

static f32 sum_squares(const f32 *values, u32 count) {
  f32x4 sums = splat(0.0f);
  u32 at = 0;
  for (; at + 4 <= count; at += 4) {
    f32x4 four = load_f32x4(values + at);
    sums = fma4(four, four, sums);
  }
  f32 sum = sum_of(sums);
  for (; at < count; at++) sum += values[at] * values[at];
  return sum;
}

// The heads that are normalised together, and what they are multiplied by.
typedef struct {
  const f32 *values;
  u32 first;
  f32 scale;
} Normed;

// Finds the heads that are normalised together with one, and their scale unless `known` is of the same.
static Normed normed_with(const qkv_heads_params *params, const f32 *token_values, u32 head, Normed known) {
  u32 q_end = params->q_heads;
  int is_q = head < q_end, is_value = head >= q_end + params->kv_heads;
  u32 first = head, count = 1;
  if (params->normed_by_row) {
    first = is_q ? 0 : q_end;
    count = is_q ? q_end : params->kv_heads;
  }
  const f32 *values = token_values + first * params->width;
  if (values == known.values) return known;
  f32 eps = is_value ? params->v_eps : is_q ? params->q_eps : params->k_eps;
  u32 dims = count * params->width;
  return (Normed){values, first, rsqrt_f32(sum_squares(values, dims) / (f32)dims + eps)};
}

// Writes a head's values, normalised, to out: [width]; weight: [width], or null.
static void normalise(const f32 *values, const f32 *weight, f32 scale, u32 width, f32 *out) {
  for (u32 at = 0; at < width; at++) out[at] = values[at] * (weight ? scale * weight[at] : scale);
}

// Rotates and stores a head of a token; values: [width].
static void store_head(const Call *call, const QkvPlaces *places, u32 token, u32 head, const f32 *values) {
  f32 *out = place_of_head(call, places, token, head);
  u32 turned = turned_pairs(places, head), passed = 2 * turned;
  u32 start = ((u32)*BUFFER(const i32, table_start) + token) * places->table_width;
  Pairs pairs = {places->pair_step, places->pair_gap, places->column_gap};
  const f32 *cosines = BUFFER(const f32, cos_table) + start, *sines = BUFFER(const f32, sin_table) + start;
  turn_pairs(pairs, 0, turned, values, out, cosines, sines);
  __builtin_memcpy(out + passed, values + passed, (places->width - passed) * sizeof(f32));
}

KERNEL(attention_qkv_heads, 1) {
  const qkv_heads_params *params = PARAMS(qkv_heads);
  const QkvPlaces *places = (const QkvPlaces *)&params->first_head;
  u32 width = params->width, heads = params->q_heads + 2 * params->kv_heads;
  u32 last = min_u32(share.last * WORKGROUP, params->tokens * heads);
  f32 *out = scratch_of(share.thread);  // [width]
  Normed normed = {0};
  for (u32 index = share.first * WORKGROUP; index < last; index++) {
    u32 token = index / heads, head = index % heads;
    int is_value = head >= params->q_heads + params->kv_heads;
    const f32 *token_values = BUFFER(const f32, qkv) + token * heads * width;
    const f32 *values = token_values + head * width;
    if (is_value ? params->values_normed : params->has_norms) {
      normed = normed_with(params, token_values, head, normed);
      const f32 *weights = head < params->q_heads ? BUFFER(const f32, q_norm) : BUFFER(const f32, k_norm);
      normalise(values, is_value ? 0 : weights + (head - normed.first) * width, normed.scale, width, out);
      values = out;
    }
    store_head(call, places, token, head, values);
  }
}
