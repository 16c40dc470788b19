// How two elements combine in f32; an integer operand is converted first.
// needs: elementwise/fragments/codes_of_two, @CODE

override A_IS_INTEGER: u32;
override B_IS_INTEGER: u32;

const NAN_BITS = 0x7fc00000u;
const INFINITY_BITS = 0x7f800000u;
const LARGEST_EXACT_POWER = 1024.0;  // beyond it repeated multiplication is no better than pow

fn as_f32(bits: u32, is_integer: bool) -> f32 {
  return select(bitcast<f32>(bits), f32(bitcast<i32>(bits)), is_integer);
}

// How often b goes into a, both positive. A device's a / b may miss a whole quotient by a hair.
fn whole_quotient(a: f32, b: f32) -> f32 {
  let guess = floor(a / b);
  let left = fma(-guess, b, a);
  return guess + select(select(0.0, 1.0, left >= b), -1.0, left < 0.0);
}

fn trunc_divide(a: f32, b: f32) -> f32 {
  let quotient = whole_quotient(abs(a), abs(b));
  return select(quotient, -quotient, (a < 0.0) != (b < 0.0));
}

fn floor_divide(a: f32, b: f32) -> f32 {
  let quotient = trunc_divide(a, b);
  let is_above = (a < 0.0) != (b < 0.0) && quotient * b != a;
  return select(quotient, quotient - 1.0, is_above);
}

// base ^ exponent as bits. WGSL's pow knows no negative base; whole exponents multiply.
fn power(base: f32, exponent: f32) -> u32 {
  let size = abs(exponent);
  let is_whole = exponent == trunc(exponent);
  if (is_whole && size <= LARGEST_EXACT_POWER) {
    var product = 1.0;
    var square = base;
    for (var left = u32(size); left > 0u; left >>= 1u) {
      if ((left & 1u) == 1u) {
        product *= square;
      }
      square *= square;
    }
    if (exponent < 0.0) {
      if (product == 0.0) {
        return INFINITY_BITS | (bitcast<u32>(product) & 0x80000000u);
      }
      product = 1.0 / product;
    }
    return bitcast<u32>(product);
  }
  if (base == 0.0) {
    return select(INFINITY_BITS, 0u, exponent > 0.0);
  }
  if (base < 0.0 && !is_whole) {
    return NAN_BITS;
  }
  let is_odd = is_whole && fract(size * 0.5) != 0.0;
  let magnitude = pow(abs(base), exponent);
  return bitcast<u32>(select(magnitude, -magnitude, base < 0.0 && is_odd));
}

fn combine(a_bits: u32, b_bits: u32) -> u32 {
  let a = as_f32(a_bits, A_IS_INTEGER == 1u);
  let b = as_f32(b_bits, B_IS_INTEGER == 1u);
  switch CODE {
    case ADD: { return bitcast<u32>(a + bitcast<f32>(params.alpha) * b); }
    case MUL: { return bitcast<u32>(a * b); }
    case DIV: { return bitcast<u32>(a / b); }
    case FLOOR_DIV: { return bitcast<u32>(floor_divide(a, b)); }
    case TRUNC_DIV: { return bitcast<u32>(trunc_divide(a, b)); }
    case MINIMUM: { return bitcast<u32>(min(a, b)); }
    case MAXIMUM: { return bitcast<u32>(max(a, b)); }
    case POW: { return power(a, b); }
    case EQ: { return u32(a == b); }
    case NE: { return u32(a != b); }
    case GE: { return u32(a >= b); }
    case GT: { return u32(a > b); }
    case LE: { return u32(a <= b); }
    case LT: { return u32(a < b); }
    case LOGICAL_AND: { return u32(a != 0.0 && b != 0.0); }
    case LOGICAL_OR, default: { return u32(a != 0.0 || b != 0.0); }
  }
}
