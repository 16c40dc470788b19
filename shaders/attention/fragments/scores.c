// The scores of attention, plain or with a soft cap, and its sinks, learned or none.

#include "attention/attend.h"
#include "attention/fragments/sinks_learned.wgsl.h"
#include "maths.h"

static f32 scale_of(const io_params *params) { return params->scale; }

FRAGMENT(Score, attention_fragments_score_plain) = {scale_of, 0};

static f32 scale_before_cap(const io_params *params) { return params->scale / params->softcap; }

static void cap(const io_params *params, u32 count, f32 *scores) {
  for (u32 at = 0; at < count; at += 4) store_f32x4(scores + at, params->softcap * tanh4(load_f32x4(scores + at)));
}

FRAGMENT(Score, attention_fragments_score_capped) = {scale_before_cap, cap};

static f32 sum_alone(const Call *call, f32 sum, f32 top, u32 head) { return sum; }

FRAGMENT(Sinks, attention_fragments_sinks_none) = {sum_alone};

// A sink's score takes part in the softmax and has no value.
static f32 sum_with_sink(const Call *call, f32 sum, f32 top, u32 head) {
  const f32 most = 80.0f;  // beyond this lead the positions' share is zero in f32
  return sum + exp_f32(min_f32(BUFFER(const f32, sinks)[head] - top, most));
}

FRAGMENT(Sinks, attention_fragments_sinks_learned) = {sum_with_sink};
