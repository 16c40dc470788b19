// The epilogues of products: independent rows, gate and up, and heads of q, k and v.

#include "attention/qkv_store.h"
#include "linear/fragments/epilogue.h"
#include "linear/fragments/epilogue_qkv.wgsl.h"
#include "linear/fragments/epilogue_swiglu.wgsl.h"
#include "linear/fragments/gate.h"
#include "linear/fragments/output_residual.wgsl.h"

// The parameters of all outputs begin alike: shape, pairs, rows.
static u32x2 rows_pair_rows(const Call *call, u32 pair) {
  u32 last = PARAMS(output_residual)->rows - 1;
  return (u32x2){min_u32(2 * pair, last), min_u32(2 * pair + 1, last)};
}

static void rows_store(const Call *call, u32 token, u32 pair, u32 count, f32 *firsts, f32 *seconds) {
  f32 sums[2 * MAX_PAIRS];
  for (u32 at = 0; at < count; at++) {
    sums[2 * at] = firsts[at];
    sums[2 * at + 1] = seconds[at];
  }
  u32 rows = min_u32(2 * count, PARAMS(output_residual)->rows - 2 * pair);
  PLUG(Output, output)->store(call, token, 2 * pair, rows, sums);
}

FRAGMENT(Epilogue, linear_fragments_epilogue_rows) = {rows_pair_rows, rows_store};

static u32x2 swiglu_pair_rows(const Call *call, u32 pair) {
  u32 pairs = PARAMS(epilogue_swiglu)->pairs;
  u32 row = min_u32(pair, pairs - 1);
  return (u32x2){row, pairs + row};
}

static void swiglu_store(const Call *call, u32 token, u32 pair, u32 count, f32 *firsts, f32 *seconds) {
  const epilogue_swiglu_params *params = PARAMS(epilogue_swiglu);
  if (params->has_bias) {
    const f32 *bias = BUFFER(const f32, bias) + pair;
    for (u32 at = 0; at < count; at++) {
      firsts[at] += bias[at];
      seconds[at] += bias[params->pairs + at];
    }
  }
  PLUG(Gate, gate)->row(firsts, seconds, BUFFER(f32, out) + token * params->pairs + pair, count);
}

FRAGMENT(Epilogue, linear_fragments_epilogue_swiglu) = {swiglu_pair_rows, swiglu_store};

static u32x2 qkv_rows(const Call *call, u32 pair) {
  const epilogue_qkv_params *params = PARAMS(epilogue_qkv);
  return qkv_pair_rows((const QkvPlaces *)&params->first_head, min_u32(pair, params->pairs - 1));
}

static void qkv_store(const Call *call, u32 token, u32 pair, u32 count, f32 *firsts, f32 *seconds) {
  const epilogue_qkv_params *params = PARAMS(epilogue_qkv);
  const QkvPlaces *places = (const QkvPlaces *)&params->first_head;
  u32 pairs = places->width / 2;
  if (params->has_bias) {
    const f32 *bias = BUFFER(const f32, bias) + params->first_head * params->width;
    for (u32 at = 0; at < count; at++) {
      u32x2 rows = qkv_pair_rows(places, pair + at);
      firsts[at] += bias[rows.x];
      seconds[at] += bias[rows.y];
    }
  }
  for (u32 at = 0, run; at < count; at += run) {
    u32 of_head = (pair + at) % pairs;
    run = min_u32(count - at, pairs - of_head);
    u32 head = params->first_head + (pair + at) / pairs;
    turn_and_store(call, places, token, head, of_head, run, firsts + at, seconds + at);
  }
}

FRAGMENT(Epilogue, linear_fragments_epilogue_qkv) = {qkv_rows, qkv_store};
