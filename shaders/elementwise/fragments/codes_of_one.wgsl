// Functions of one element, by the CODE that an op gives; py_runtime/ops/kernels/elementwise.py goes by
// the names.
// needs: nothing

const IS_ZERO = 0u;
const IS_NONZERO = 1u;
const CONVERT = 2u;  // f32 to i32 towards zero, i32 to f32
const NEG = 3u;
const ABS = 4u;
const RELU = 5u;
const CLAMP = 6u;
const CLAMP_MIN = 7u;
const CLAMP_MAX = 8u;
const BITWISE_NOT = 9u;  // i32 only
const SIGMOID = 10u;  // this and the rest: f32 only
const SILU = 11u;
const GELU = 12u;
const GELU_TANH = 13u;
const TANH = 14u;
const EXP = 15u;
const LOG = 16u;
const SQRT = 17u;
const RSQRT = 18u;
const SIN = 19u;
const COS = 20u;
const ROUND = 21u;
const HARDSWISH = 22u;
const LEAKY_RELU = 23u;
