// Products with weights of any kind, multiplied as floats.

#include "linear/products.h"

KERNEL(linear_gemm_wide, 1) { multiply_floats(call, share, weights_of(call), BUFFER(const f32, x)); }
