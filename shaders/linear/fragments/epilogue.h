// What becomes of a product's sums: see epilogue_*.wgsl and output_*.wgsl.

#pragma once

#include "kernel.h"
#include "linear/fragments/params.wgsl.h"

enum { MAX_PAIRS = 8 };  // that an epilogue takes at a time

// Params of every product begin with these members.
typedef struct {
  LinearParams shape;
  u32 pairs;
} ProductParams;

typedef struct {
  u32x2 (*pair_rows)(const Call *call, u32 pair);
  // Takes the sums of a token's pairs from `pair` on: the first rows' and the second ones'. It may change them.
  void (*store)(const Call *call, u32 token, u32 pair, u32 count, f32 *firsts, f32 *seconds);
} Epilogue;

// What the epilogue of independent rows does with those from `row` on.
typedef struct {
  void (*store)(const Call *call, u32 token, u32 row, u32 count, f32 *sums);
} Output;
