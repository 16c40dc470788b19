// A walk over up to eight axes, planned by py_runtime/ops/kernels/strided.py: the offsets of element `index`
// of the output in up to four operands. Params has, beside its own members:
//   steps: array<vec4u, MAX_AXES>,  // of an axis, for each operand
//   sizes: array<vec4u, MAX_AXES / 4>,  // of the axis inside each axis
//   rank: u32,
// needs: nothing

const MAX_AXES = 8u;

fn walk(index: u32) -> vec4u {
  var rest = index;
  var offsets = index * params.steps[0];
  for (var axis = 1u; axis < params.rank; axis++) {
    rest /= params.sizes[axis / 4u][axis % 4u];
    offsets += rest * params.steps[axis];
  }
  return offsets;
}
