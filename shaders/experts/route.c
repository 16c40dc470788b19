// Routing: the experts that a token uses, and their shares of the sum, by the softmax of their logits or by the
// sigmoid of each logit. A bias may be added to the sigmoids for the choice of experts only, not for their shares.
// logits: [tokens, experts]; choice: [experts]; chosen, shares: [tokens, used]. A workgroup is a token.

#include "experts/route.wgsl.h"
#include "kernel.h"
#include "maths.h"

static const f32 EPSILON = 1e-6f;  // added to a sum of sigmoids, which may be close to zero

// The experts of the largest scores, the largest first, and the lower of two with the same.
static void pick(const f32 *scores, u32 experts, u32 used, u32 *picked) {
  for (u32 expert = 0, count = 0; expert < experts; expert++) {
    if (count == used && !(scores[expert] > scores[picked[used - 1]])) continue;
    u32 place = count < used ? count++ : used - 1;
    for (; place > 0 && scores[expert] > scores[picked[place - 1]]; place--) picked[place] = picked[place - 1];
    picked[place] = expert;
  }
}

KERNEL(experts_route, 8) {
  const route_params *params = PARAMS(route);
  u32 experts = params->experts, used = params->used;
  u32 last = min_u32(share.last, params->tokens);
  for (u32 token = share.first; token < last; token++) {
    const f32 *logits = BUFFER(const f32, logits) + token * experts;
    f32 strengths[MAX_EXPERTS], scores[MAX_EXPERTS];  // an expert's share is proportional to its strength
    for (u32 expert = 0; expert < experts; expert++) {
      strengths[expert] = params->by_sigmoid ? sigmoid_f32(logits[expert]) : logits[expert];
      scores[expert] = strengths[expert] + (params->has_choice ? BUFFER(const f32, choice)[expert] : 0);
    }
    u32 *picked = BUFFER(u32, chosen) + token * used;
    pick(scores, experts, used, picked);
    f32 total = 0;
    if (!params->by_sigmoid) {
      f32 top = logits[picked[0]];
      for (u32 expert = 0; expert < experts; expert++) {
        strengths[expert] = exp_f32(logits[expert] - top);
        total += strengths[expert];
      }
    }
    if (params->renormalised) {
      total = params->by_sigmoid ? EPSILON : 0;
      for (u32 place = 0; place < used; place++) total += strengths[picked[place]];
    } else if (params->by_sigmoid) {
      total = 1;
    }
    f32 *shares = BUFFER(f32, shares) + token * used;
    for (u32 place = 0; place < used; place++) shares[place] = params->scale * strengths[picked[place]] / total;
  }
}
