// What a kernel for several element types works on.

#pragma once

#include "simd.h"

typedef struct {
  int is_integer;
} Element;
