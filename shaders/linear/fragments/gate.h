// The activation of a gated layer: out = activation(gate) * up, for rows of numbers.

#pragma once

#include "simd.h"

typedef struct {
  void (*row)(const f32 *gate, const f32 *up, f32 *out, u32 count);  // out may be one of the others
} Gate;
