// A walk over up to eight axes, which py_runtime/ops/kernels/strided.py plans: where element `index`
// of the output lies in up to four operands. Params has, beside what else it has:
//   steps: array<vec4u, MOST_AXES>,  // of an axis, for each operand
//   sizes: array<vec4u, MOST_AXES / 4>,  // of the axis inside each axis
//   rank: u32,
// needs: nothing

const MOST_AXES = 8u;

fn walk(index: u32) -> vec4u {
  var rest = index;
  var offsets = index * params.steps[0];
  for (var axis = 1u; axis < params.rank; axis++) {
    rest /= params.sizes[axis / 4u][axis % 4u];
    offsets += rest * params.steps[axis];
  }
  return offsets;
}
