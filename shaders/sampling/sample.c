// Draws the next token from the logits, hands it to the next step, and moves that step's live scalars on.
//
// It draws what the shader's narrow workgroup draws: the sums of LANES strands of tokens, each LANES apart, take
// the place of its invocations. Exponentials are computed once, for the tokens that top_k leaves. The k-th largest
// logit comes from a heap, or by counting bits where k is large.

#include "kernel.h"
#include "maths.h"
#include "rows.h"
#include "sampling/fragments/size_narrow.wgsl.h"
#include "sampling/sample.wgsl.h"

enum {
  LANES = WORKGROUP,
  LARGEST_HEAP = 512,
  BINS = 1 << 16,
};
static const f32 NOTHING = -3.0e38f;  // below any logit
static const i32 ANY = -__INT_MAX__ - 1;  // below any key

// Adjusted logits and their probabilities, not yet divided by the sum of all.
typedef struct {
  f32 *adjusted;  // [whole strands]; past the vocabulary they are minus infinity
  f32 *weights;   // likewise; of tokens from some key on
  u32 count;      // a multiple of LANES
} Candidates;

// Floats as integers of the same order.
INLINE i32x4 keys4(f32x4 values) {
  i32x4 bits = (i32x4)values;
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
INLINE i32 key_of(f32 value) { return keys4(splat(value)).x; }
INLINE int any4(i32x4 mask) { return wasm_v128_any_true((v128_t)mask); }

// Penalties of one token that the prompt or the answer has.
static f32 penalise(const sample_params *params, f32 value, u32 history) {
  value = value > 0 ? value / params->repetition_penalty : value * params->repetition_penalty;
  u32 written = history & ~IN_PROMPT;
  return written ? value - (params->presence_penalty + (f32)written * params->frequency_penalty) : value;
}

// What the logits become for the choice of a token.
typedef struct {
  const sample_params *params;
  const f32 *logits;
  const f32 *bias;     // or null
  const u32 *history;  // or null
  f32 *adjusted;       // or null: nobody needs them
} Adjustment;

// Adjust up to four logits from token `at` on; there are none past `lanes`.
INLINE f32x4 adjust(const Adjustment *own, u32 at, u32 lanes) {
  f32x4 logits = load_lanes(own->logits + at, lanes, -__builtin_inff()), values = logits;
  i32x4 is_number = logits >= NOTHING;
  if (own->bias) values += load_lanes(own->bias + at, lanes, 0);
  const u32 *history = own->history + at;
  if (own->history && (lanes < 4 || any4((i32x4)wasm_v128_load(history)))) {
    for (u32 lane = 0; lane < lanes; lane++) {
      if (history[lane]) values[lane] = penalise(own->params, values[lane], history[lane]);
    }
  }
  values = at_least4(at_most4(values * own->params->inverse_temperature, -NOTHING), NOTHING);
  values = select4(is_number, values, splat(NOTHING));
  if (own->adjusted) store_lanes(own->adjusted + at, lanes, values);
  return values;
}

// The best of each lane, and the tokens that have them: the lowest of several.
typedef struct {
  f32x4 values;
  u32x4 tokens;
} Best;

INLINE Best better_of(Best best, f32x4 values, u32 first) {
  u32x4 tokens = first + (u32x4){0, 1, 2, 3};
  i32x4 is_better = values > best.values;
  return (Best){
    select4(is_better, values, best.values),
    (u32x4)wasm_v128_bitselect((v128_t)tokens, (v128_t)best.tokens, (v128_t)is_better),
  };
}

static u32 token_of(Best best) {
  u32 lane = 0;
  for (u32 other = 1; other < 4; other++) {
    int is_lower = best.values[other] == best.values[lane] && best.tokens[other] < best.tokens[lane];
    if (best.values[other] > best.values[lane] || is_lower) lane = other;
  }
  return best.tokens[lane];
}

// The token of the largest value, the lowest of several; NO_TOKEN where there is no number.
static u32 adjust_all(const Call *call, f32 *adjusted) {
  const sample_params *params = PARAMS(sample);
  Adjustment own = {
    .params = params,
    .logits = BUFFER(const f32, logits) + BUFFER(const State, state)->drawn * params->row_stride,
    .bias = params->has_bias ? BUFFER(const f32, bias) : 0,
    .history = params->has_history ? BUFFER(const u32, history) : 0,
    .adjusted = adjusted,
  };
  Best best = {splat(NOTHING), NO_TOKEN};
  u32 at = 0, count = params->vocabulary;
  for (; at + 4 <= count; at += 4) best = better_of(best, adjust(&own, at, 4), at);
  if (at < count) best = better_of(best, adjust(&own, at, count - at), at);
  return token_of(best);
}

// The least of the k largest keys stands first; a child is never below its parent.
static i32 kth_by_heap(const Candidates *all, u32 k) {
  i32 heap[LARGEST_HEAP];
  for (u32 at = 0; at < k; at++) heap[at] = ANY;
  for (u32 token = 0; token < all->count; token += 4) {
    i32x4 keys = keys4(load_f32x4(all->adjusted + token));
    if (!any4(keys > heap[0])) continue;
    for (u32 lane = 0; lane < 4; lane++) {
      i32 key = keys[lane];
      if (key <= heap[0]) continue;
      u32 at = 0;
      for (u32 child = 1; child < k; child = 2 * at + 1) {
        if (child + 1 < k && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= key) break;
        heap[at] = heap[child];
        at = child;
      }
      heap[at] = key;
    }
  }
  return heap[0];
}

// Half of the key's bits are counted at a time. counts: [BINS].
static i32 kth_by_counting(const Candidates *all, u32 k, u32 *counts) {
  u32 prefix = 0, missing = k;
  for (i32 shift = 16; shift >= 0; shift -= 16) {
    __builtin_memset(counts, 0, BINS * sizeof(u32));
    for (u32 token = 0; token < all->count; token++) {
      u32 key = (u32)key_of(all->adjusted[token]) ^ 0x80000000u;
      if (shift == 16 || key >> 16 == prefix >> 16) counts[key >> shift & (BINS - 1)]++;
    }
    u32 bin = BINS - 1;
    for (; bin > 0 && counts[bin] < missing; bin--) missing -= counts[bin];
    prefix |= bin << shift;
  }
  return (i32)(prefix ^ 0x80000000u);
}

// Weights of the tokens from a key on; those of others are not read.
static void weigh(const Candidates *all, f32 top, i32 lowest) {
  for (u32 token = 0; token < all->count; token += 4) {
    f32x4 values = load_f32x4(all->adjusted + token);
    if (any4(keys4(values) >= lowest)) store_f32x4(all->weights + token, exp4(values - top));
  }
}

// The weights of each strand's tokens from a key on.
static void sum_strands(const Candidates *all, i32 lowest, f32 *sums) {
  f32x4 strands[LANES / 4] = {};
  for (u32 token = 0; token < all->count; token += LANES) {
    for (u32 at = 0; at < LANES / 4; at++) {
      i32x4 is_in = keys4(load_f32x4(all->adjusted + token + 4 * at)) >= lowest;
      strands[at] += (f32x4)(is_in & (i32x4)load_f32x4(all->weights + token + 4 * at));
    }
  }
  for (u32 at = 0; at < LANES / 4; at++) store_f32x4(sums + 4 * at, strands[at]);
}

static f32 mass_from(const Candidates *all, i32 lowest) {
  f32 sums[LANES];
  sum_strands(all, lowest, sums);
  for (u32 half = LANES / 2; half > 0; half /= 2) {
    for (u32 lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

INLINE u32 scrambled(u32 word) {
  u32 bits = word ^ (word >> 16);
  bits *= 0x7feb352du;
  bits ^= bits >> 15;
  bits *= 0x846ca68bu;
  return bits ^ (bits >> 16);
}

// From 0 up to, not including, 1.
INLINE f32 random(u32 seed, u32 draw) { return (f32)(scrambled(draw ^ scrambled(seed)) >> 8) / 16777216.0f; }

// A token whose key is at least `lowest`, by its probability; `number` is from 0 to 1.
static u32 draw(const Candidates *all, i32 lowest, f32 number) {
  f32 ends[LANES];  // sums up to and including each strand, added in the shader's order
  sum_strands(all, lowest, ends);
  for (u32 reach = 1; reach < LANES; reach *= 2) {
    for (u32 lane = LANES - 1; lane >= reach; lane--) ends[lane] += ends[lane - reach];
  }
  f32 wanted = number * ends[LANES - 1];
  u32 lane = 0;
  while (lane < LANES && !((lane ? ends[lane - 1] : 0) <= wanted && wanted < ends[lane])) lane++;
  if (lane == LANES) return NO_TOKEN;
  f32 sum = lane ? ends[lane - 1] : 0;
  u32 drawn = NO_TOKEN;
  for (u32 token = lane; token < all->count && sum <= wanted; token += LANES) {
    if (key_of(all->adjusted[token]) < lowest) continue;
    drawn = token;
    sum += all->weights[token];
  }
  return drawn;
}

static u32 sample(const Call *call, const Candidates *all, u32 likeliest, void *scratch) {
  const sample_params *params = PARAMS(sample);
  State *state = BUFFER(State, state);
  f32 top = all->adjusted[likeliest];
  i32 kept = ANY;  // the lowest key that top_k keeps
  if (params->top_k > 0 && params->top_k < params->vocabulary) {
    int is_small = params->top_k <= LARGEST_HEAP;
    kept = is_small ? kth_by_heap(all, params->top_k) : kth_by_counting(all, params->top_k, scratch);
  }
  i32 likely = key_of(max_f32(top + params->log_min_p, NOTHING));
  i32 lowest = likely > kept ? likely : kept;
  weigh(all, top, params->top_p < 1.0f ? kept : lowest);
  f32 allowed = params->top_p < 1.0f ? params->top_p * mass_from(all, kept) : 0;  // above an accepted token
  for (u32 round = 0; round < MAX_ROUNDS; round++) {
    u32 token = draw(all, lowest, random(params->seed, state->draws));
    state->draws++;
    if (token == NO_TOKEN) break;  // rounding put the number past the last sum
    if (params->top_p >= 1.0f) return token;
    i32 above = key_of(all->adjusted[token]) + 1;
    if (mass_from(all, above) < allowed) return token;
    lowest = above;
  }
  return likeliest;
}

static void hand_over(const Call *call, u32 token) {
  const sample_params *params = PARAMS(sample);
  State *state = BUFFER(State, state);
  if (params->row_stride && state->tokens[state->drawn] != token) state->ended = 1;
  state->tokens[state->drawn++] = token;
  BUFFER(u32, next_input)[0] = min_u32(token, params->vocabulary - 1);
  if (params->has_history && token < params->vocabulary) BUFFER(u32, history)[token]++;
  const u32x2 *changes = BUFFER(const u32x2, arena_changes);
  for (u32 at = 0; at < params->changes; at++) BUFFER(u32, arena)[changes[at].x] += changes[at].y;
}

KERNEL(sampling_sample, 1) {
  const sample_params *params = PARAMS(sample);
  if (BUFFER(const State, state)->ended) return;
  u32 count = ceil_div(params->vocabulary, LANES) * LANES;
  f32 *adjusted = BUFFER(f32, adjusted);
  Candidates all = {adjusted, adjusted + count, count};
  u32 token = adjust_all(call, params->greedy ? 0 : adjusted);
  if (!params->greedy && token != NO_TOKEN) {
    for (u32 at = params->vocabulary; at < count; at++) adjusted[at] = -__builtin_inff(), all.weights[at] = 0;
    token = sample(call, &all, token, scratch_of(share.thread));
  }
  hand_over(call, token);
}
