// Functions of two elements, by the CODE that an op gives; py_runtime/ops/binary.py goes by the names.
// needs: nothing

const ADD = 0u;
const MUL = 1u;
const DIV = 2u;  // f32 only
const FLOOR_DIV = 3u;
const TRUNC_DIV = 4u;
const MINIMUM = 5u;
const MAXIMUM = 6u;
const POW = 7u;
const EQ = 8u;
const NE = 9u;
const GE = 10u;
const GT = 11u;
const LE = 12u;
const LT = 13u;
const LOGICAL_AND = 14u;
const LOGICAL_OR = 15u;
const BITWISE_AND = 16u;  // i32 only
const BITWISE_OR = 17u;  // i32 only
