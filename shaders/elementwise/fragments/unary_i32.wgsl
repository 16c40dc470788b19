// Functions of one i32.
// needs: elementwise/fragments/codes_of_one, @CODE

fn apply(bits: u32) -> u32 {
  let x = bitcast<i32>(bits);
  let first = bitcast<i32>(params.first);
  let second = bitcast<i32>(params.second);
  switch CODE {
    case IS_ZERO: { return u32(x == 0); }
    case IS_NONZERO: { return u32(x != 0); }
    case CONVERT: { return bitcast<u32>(f32(x)); }
    case NEG: { return bitcast<u32>(-x); }
    case ABS: { return bitcast<u32>(abs(x)); }
    case RELU: { return bitcast<u32>(max(x, 0)); }
    case CLAMP: { return bitcast<u32>(min(max(x, first), second)); }
    case CLAMP_MIN: { return bitcast<u32>(max(x, first)); }
    case CLAMP_MAX: { return bitcast<u32>(min(x, second)); }
    case BITWISE_NOT, default: { return ~bits; }
  }
}
