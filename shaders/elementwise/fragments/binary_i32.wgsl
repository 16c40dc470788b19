// How two elements combine in i32. CODE as in ops/binary.py.

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
    case 0u: { return bitcast<u32>(a + bitcast<i32>(params.alpha) * b); }
    case 1u: { return bitcast<u32>(a * b); }
    case 3u: { return bitcast<u32>(floor_divide(a, b)); }
    case 4u: { return bitcast<u32>(a / b); }
    case 5u: { return bitcast<u32>(min(a, b)); }
    case 6u: { return bitcast<u32>(max(a, b)); }
    case 7u: { return bitcast<u32>(power(a, b)); }
    case 8u: { return u32(a == b); }
    case 9u: { return u32(a != b); }
    case 10u: { return u32(a >= b); }
    case 11u: { return u32(a > b); }
    case 12u: { return u32(a <= b); }
    case 13u: { return u32(a < b); }
    case 14u: { return u32(a != 0 && b != 0); }
    case 15u: { return u32(a != 0 || b != 0); }
    case 16u: { return a_bits & b_bits; }
    default: { return a_bits | b_bits; }
  }
}
