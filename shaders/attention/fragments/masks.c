// The masks of attention: causal, a sliding window, and one given as a tensor.

#include "attention/attend.h"
#include "attention/fragments/mask_tensor.wgsl.h"
#include "maths.h"

static u32 own_end(const Call *call, u32 token) { return (u32)*BUFFER(const i32, start_pos) + token + 1; }

// The first tokens of a call may be those of an image, which see each other.
static u32 end_of(const Call *call, u32 token) {
  return max_u32(own_end(call, token), (u32)*BUFFER(const i32, start_pos) + PARAMS(io)->together);
}

static Range see_all_before(const Call *call, u32 token) { return (Range){0, end_of(call, token)}; }

FRAGMENT(Mask, attention_fragments_mask_causal) = {see_all_before, 0};

static Range see_window(const Call *call, u32 token) {
  u32 end = own_end(call, token);
  return (Range){end - min_u32(end, PARAMS(io)->window), end_of(call, token)};
}

FRAGMENT(Mask, attention_fragments_mask_window) = {see_window, 0};

// All, or those less than a window away.
static Range see_both_ways(const Call *call, u32 token) {
  u32 window = PARAMS(io)->window, tokens = PARAMS(io)->kv_tokens;
  if (window == 0) return (Range){0, tokens};
  return (Range){token + 1 - min_u32(token + 1, window), min_u32(token + window, tokens)};
}

// The mask is added to the scores, or says where they stay.
INLINE f32x4 mask_four(f32x4 scores, u32x4 bits, u32 kind) {
  if (kind == BOOL_MASK) return select4(bits != 0, scores, splat(MASKED));
  // -1e30 swallows any score, as the lowest float would.
  return select4(bits == MINUS_INFINITY, splat(MASKED), scores + at_least4((f32x4)bits, -1e30f));
}

static void mask_by_tensor(const Call *call, Row row, u32 first, u32 count, f32 *scores) {
  const io_params *params = PARAMS(io);
  if (params->mask_kind == NO_MASK) return;
  u32x4 strides = params->mask_strides;  // batch, head, query, key
  const u32 *mask = BUFFER(const u32, mask) + row.batch * strides.x + row.head * strides.y + row.token * strides.z;
  mask += first * strides.w;
  u32 at = 0;
  for (; at + 4 <= count && strides.w == 1; at += 4) {
    f32x4 masked = mask_four(load_f32x4(scores + at), (u32x4)load_f32x4((const f32 *)(mask + at)), params->mask_kind);
    store_f32x4(scores + at, masked);
  }
  for (; at < count; at++) {
    u32 bits = mask[at * strides.w];
    scores[at] = mask_four(splat(scores[at]), (u32x4)splat(as_float(bits)), params->mask_kind).x;
  }
}

FRAGMENT(Mask, attention_fragments_mask_tensor) = {see_both_ways, mask_by_tensor};
