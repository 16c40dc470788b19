// Functions of one i32. CODE as in py_runtime/ops/kernels/elementwise.py.

fn apply(bits: u32) -> u32 {
  let x = bitcast<i32>(bits);
  let first = bitcast<i32>(params.first);
  let second = bitcast<i32>(params.second);
  switch CODE {
    case 0u: { return u32(x == 0); }
    case 1u: { return u32(x != 0); }
    case 2u: { return bitcast<u32>(f32(x)); }
    case 3u: { return bitcast<u32>(-x); }
    case 4u: { return bitcast<u32>(abs(x)); }
    case 5u: { return bitcast<u32>(max(x, 0)); }
    case 6u: { return bitcast<u32>(min(max(x, first), second)); }
    case 7u: { return bitcast<u32>(max(x, first)); }
    case 8u: { return bitcast<u32>(min(x, second)); }
    default: { return ~bits; }
  }
}
