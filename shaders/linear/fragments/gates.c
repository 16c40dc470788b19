// The activations of gated layers: SwiGLU, GeGLU and that of gpt-oss.

#include "kernel.h"
#include "linear/fragments/gate.h"
#include "maths.h"

// The activation of gpt-oss: SwiGLU with clamped inputs, a steeper sigmoid, and up + 1.
INLINE f32x4 clamped4(f32x4 gate, f32x4 up) {
  f32x4 low = min4(gate, splat(7.0f));
  f32x4 within = min4(max4(up, splat(-7.0f)), splat(7.0f));
  return (within + 1.0f) * low * sigmoid4(1.702f * low);
}

INLINE f32x4 silu_times4(f32x4 gate, f32x4 up) { return silu4(gate) * up; }
INLINE f32x4 gelu_times4(f32x4 gate, f32x4 up) { return gelu_tanh4(gate) * up; }

#define GATE(name, gated4) \
  static void name##_row(const f32 *gate, const f32 *up, f32 *out, u32 count) { \
    u32 at = 0; \
    for (; at + 4 <= count; at += 4) store_f32x4(out + at, gated4(load_f32x4(gate + at), load_f32x4(up + at))); \
    for (; at < count; at++) out[at] = gated4(splat(gate[at]), splat(up[at])).x; \
  }

GATE(silu, silu_times4)
GATE(gelu, gelu_times4)
GATE(clamped, clamped4)

FRAGMENT(Gate, linear_fragments_gate_silu) = {silu_row};
FRAGMENT(Gate, linear_fragments_gate_gelu) = {gelu_row};
FRAGMENT(Gate, linear_fragments_gate_clamped) = {clamped_row};
