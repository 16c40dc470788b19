// Functions of one f32.
// needs: elementwise/fragments/codes_of_one, shared/tanh, @CODE

alias OneOrFour = f32;  // what tanh_of takes

// exp never sees a large positive number, so nothing overflows on the way.
fn sigmoid(x: f32) -> f32 {
  let small = exp(-abs(x));
  let upper = 1.0 / (1.0 + small);
  return select(small * upper, upper, x >= 0.0);
}

// erfc(z) for z >= 0, to 3e-7: exp(-z²) times a polynomial in t fitted to erfc(z) exp(z²) / t.
fn erfc(z: f32) -> f32 {
  let t = 1.0 / (1.0 + 0.4 * z);
  var sum = -0.029594338;
  sum = sum * t + 0.19801322;
  sum = sum * t - 0.49881151;
  sum = sum * t + 0.54743546;
  sum = sum * t - 0.2843667;
  sum = sum * t + 0.27206624;
  sum = sum * t + 0.12967961;
  sum = sum * t + 0.21491911;
  sum = sum * t + 0.22495203;
  sum = sum * t + 0.22570691;
  return sum * t * exp(-z * z);
}

fn gelu(x: f32) -> f32 {
  let tail = 0.5 * erfc(abs(x) * 0.70710678);
  return x * select(tail, 1.0 - tail, x >= 0.0);
}

// 0.5 (1 + tanh u) is sigmoid(2u), which keeps its precision in the tail.
fn gelu_tanh(x: f32) -> f32 {
  return x * sigmoid(1.5957691 * (x + 0.044715 * x * x * x));
}

// sin(x + shift * pi / 2). The built-in ones may be off by 2^-11 and fail at large angles: x is brought
// into [-pi/4, pi/4] with pi/2 in three parts whose products with a quadrant below 2^16 are exact.
fn sine(x: f32, shift: i32) -> f32 {
  let quadrants = round(x * 0.63661977);
  let angle = ((x - quadrants * 1.5703125) - quadrants * 0.00048351288) - quadrants * 3.1391648e-7;
  let quadrant = (i32(quadrants) + shift) & 3;
  let square = angle * angle;
  let sine_part = angle * (1.0 + square * (-0.16666667 + square * (0.0083333333 + square * (
    -0.00019841270 + square * 2.7557319e-6))));
  let cosine_part = 1.0 + square * (-0.5 + square * (0.041666667 + square * (
    -0.0013888889 + square * (2.4801587e-5 - square * 2.7557319e-7))));
  let value = select(sine_part, cosine_part, (quadrant & 1) == 1);
  return select(value, -value, quadrant >= 2);
}

fn apply(bits: u32) -> u32 {
  let x = bitcast<f32>(bits);
  let first = bitcast<f32>(params.first);
  let second = bitcast<f32>(params.second);
  switch CODE {
    case IS_ZERO: { return u32(x == 0.0); }
    case IS_NONZERO: { return u32(x != 0.0); }
    case CONVERT: { return bitcast<u32>(i32(x)); }
    case NEG: { return bitcast<u32>(-x); }
    case ABS: { return bitcast<u32>(abs(x)); }
    case RELU: { return bitcast<u32>(max(x, 0.0)); }
    case CLAMP: { return bitcast<u32>(min(max(x, first), second)); }
    case CLAMP_MIN: { return bitcast<u32>(max(x, first)); }
    case CLAMP_MAX: { return bitcast<u32>(min(x, second)); }
    case SIGMOID: { return bitcast<u32>(sigmoid(x)); }
    case SILU: { return bitcast<u32>(x * sigmoid(x)); }
    case GELU: { return bitcast<u32>(gelu(x)); }
    case GELU_TANH: { return bitcast<u32>(gelu_tanh(x)); }
    case TANH: { return bitcast<u32>(tanh_of(x)); }
    case EXP: { return bitcast<u32>(exp(x)); }
    case LOG: { return bitcast<u32>(log(x)); }
    case SQRT: { return bitcast<u32>(sqrt(x)); }
    case RSQRT: { return bitcast<u32>(inverseSqrt(x)); }
    case SIN: { return bitcast<u32>(sine(x, 0)); }
    case COS: { return bitcast<u32>(sine(x, 1)); }
    case ROUND: { return bitcast<u32>(round(x)); }
    case HARDSWISH: { return bitcast<u32>(x * min(max(x + 3.0, 0.0), 6.0) / 6.0); }
    case LEAKY_RELU, default: { return bitcast<u32>(select(x * first, x, x >= 0.0)); }
  }
}
