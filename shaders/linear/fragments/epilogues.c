// The epilogues of products: independent rows, gate and up, and heads of q, k and v.

#include "attention/qkv_store.h"
#include "linear/fragments/epilogue.h"
#include "linear/fragments/epilogue_qkv.wgsl.h"
#include "linear/fragments/epilogue_swiglu.wgsl.h"
#include "linear/fragments/gate.h"
#include "linear/fragments/output_residual.wgsl.h"

// Which two rows are a pair does not matter: the first half of all rows are first ones. The parameters of all outputs
// begin alike: shape, pairs, rows.
static void rows_rows(const Call *call, u32 pair, u32 count, u32 *firsts, u32 *seconds) {
  u32 last = PARAMS(output_residual)->rows - 1;
  for (u32 at = 0; at < count; at++) {
    firsts[at] = min_u32(2 * pair + at, last);
    seconds[at] = min_u32(2 * pair + count + at, last);
  }
}

static void rows_store(const Call *call, u32 token, u32 pair, u32 count, f32 *firsts, f32 *seconds) {
  const Output *output = PLUG(Output, output);
  u32 rows = min_u32(2 * count, PARAMS(output_residual)->rows - 2 * pair);
  output->store(call, token, 2 * pair, min_u32(count, rows), firsts);
  if (rows > count) output->store(call, token, 2 * pair + count, rows - count, seconds);
}

FRAGMENT(Epilogue, linear_fragments_epilogue_rows) = {rows_rows, rows_store};

static void swiglu_rows(const Call *call, u32 pair, u32 count, u32 *firsts, u32 *seconds) {
  u32 pairs = PARAMS(epilogue_swiglu)->pairs;
  for (u32 at = 0; at < count; at++) {
    firsts[at] = pair + at;
    seconds[at] = pairs + pair + at;
  }
}

static void swiglu_store(const Call *call, u32 token, u32 pair, u32 count, f32 *firsts, f32 *seconds) {
  const epilogue_swiglu_params *params = PARAMS(epilogue_swiglu);
  if (params->has_bias) {
    const f32 *bias = BUFFER(const f32, bias) + token * params->bias_stride + pair;
    for (u32 at = 0; at < count; at++) {
      firsts[at] += bias[at];
      seconds[at] += bias[params->pairs + at];
    }
  }
  PLUG(Gate, gate)->row(firsts, seconds, BUFFER(f32, out) + token * params->pairs + pair, count);
}

FRAGMENT(Epilogue, linear_fragments_epilogue_swiglu) = {swiglu_rows, swiglu_store};

static void qkv_rows(const Call *call, u32 pair, u32 count, u32 *firsts, u32 *seconds) {
  const epilogue_qkv_params *params = PARAMS(epilogue_qkv);
  for (u32 at = 0; at < count; at++) {
    u32x2 rows = qkv_pair_rows((const QkvPlaces *)&params->first_head, pair + at);
    firsts[at] = rows.x;
    seconds[at] = rows.y;
  }
}

static void qkv_store(const Call *call, u32 token, u32 pair, u32 count, f32 *firsts, f32 *seconds) {
  const epilogue_qkv_params *params = PARAMS(epilogue_qkv);
  const QkvPlaces *places = (const QkvPlaces *)&params->first_head;
  u32 pairs = places->width / 2;
  if (params->has_bias) {
    const f32 *bias = BUFFER(const f32, bias) + token * params->bias_stride + params->first_head * params->width;
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
