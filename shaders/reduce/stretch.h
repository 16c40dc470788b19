// Neighbouring results of a reduction along the middle of x: [outer, width, inner] into [outer, parts, inner],
// where a part takes every parts-th element: results that are neighbours read elements that are neighbours.

#pragma once

#include "simd.h"

// Results with equally many elements each, in one outer row.
typedef struct {
  u32 first;    // result
  u32 results;  // one after the other
  u32 from;     // the first result's first element; those of the next results follow it
  u32 step;     // from an element of a result to its next
  u32 rounds;   // elements of each result
} Stretch;

// Go on to the longest stretch that starts where this one ends, up to result `last`; false where there is none.
// The first stretch starts at the `first` of a stretch without results.
INLINE int next_stretch(Stretch *stretch, u32 last, u32 width, u32 inner, u32 parts) {
  u32 first = stretch->first + stretch->results;
  if (first >= last) return 0;
  u32 step = parts * inner, column = first % step;
  u32 longer = width % parts * inner;  // columns of the parts that have an element more
  int is_longer = column < longer;
  *stretch = (Stretch){
    .first = first,
    .results = min_u32(last - first, (is_longer ? longer : step) - column),
    .from = first / step * width * inner + column,
    .step = step,
    .rounds = width / parts + is_longer,
  };
  return 1;
}
