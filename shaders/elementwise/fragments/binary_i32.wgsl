// How two elements combine in i32.
// needs: elementwise/fragments/codes_of_two, @CODE

// a / b rounded towards minus infinity.
fn floor_divide(a: i32, b: i32) -> i32 {
  let quotient = a / b;
  let is_exact = quotient * b == a;
  return select(quotient - 1, quotient, is_exact || (a < 0) == (b < 0));
}

// Negative exponents leave only what is whole: 1 and -1 have powers there, all else gives 0.
fn power(base: i32, exponent: i32) -> i32 {
  if (exponent < 0 && abs(base) != 1) {
    return 0;
  }
  var product = 1;
  var square = base;
  for (var left = u32(abs(exponent)); left > 0u; left >>= 1u) {
    if ((left & 1u) == 1u) {
      product *= square;
    }
    square *= square;
  }
  return product;
}

fn combine(a_bits: u32, b_bits: u32) -> u32 {
  let a = bitcast<i32>(a_bits);
  let b = bitcast<i32>(b_bits);
  switch CODE {
    case ADD: { return bitcast<u32>(a + bitcast<i32>(params.alpha) * b); }
    case MUL: { return bitcast<u32>(a * b); }
    case FLOOR_DIV: { return bitcast<u32>(floor_divide(a, b)); }
    case TRUNC_DIV: { return bitcast<u32>(a / b); }
    case MINIMUM: { return bitcast<u32>(min(a, b)); }
    case MAXIMUM: { return bitcast<u32>(max(a, b)); }
    case POW: { return bitcast<u32>(power(a, b)); }
    case EQ: { return u32(a == b); }
    case NE: { return u32(a != b); }
    case GE: { return u32(a >= b); }
    case GT: { return u32(a > b); }
    case LE: { return u32(a <= b); }
    case LT: { return u32(a < b); }
    case LOGICAL_AND: { return u32(a != 0 && b != 0); }
    case LOGICAL_OR: { return u32(a != 0 || b != 0); }
    case BITWISE_AND: { return a_bits & b_bits; }
    case BITWISE_OR, default: { return a_bits | b_bits; }
  }
}
