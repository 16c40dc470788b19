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
  // Names the rows of `count` pairs from `pair` on: the first ones, and the second ones.
  void (*rows)(const Call *call, u32 pair, u32 count, u32 *firsts, u32 *seconds);
  // Takes the sums of the same rows for a token, and may change them.
  void (*store)(const Call *call, u32 token, u32 pair, u32 count, f32 *firsts, f32 *seconds);
} Epilogue;

// What the epilogue of independent rows does with those from `row` on.
typedef struct {
  void (*store)(const Call *call, u32 token, u32 row, u32 count, f32 *sums);
} Output;
