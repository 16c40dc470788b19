// Products of small matrices of halves, with sums in f32, by a GPU's matrix units, which take the invocations
// of a whole subgroup. A matrix is loaded from vectors of eight halves in workgroup memory, with a stride in
// vectors from one row (of the left factor) or column (of the right one) to the next.
// needs: nothing
enable chromium_experimental_subgroup_matrix;
enable subgroups;
enable f16;

const UNIT_SIDE = 16u;  // of all three matrices
const UNIT_VECTORS = 2u;  // of a row of halves

alias LeftUnit = subgroup_matrix_left<f16, 16, 16>;
alias RightUnit = subgroup_matrix_right<f16, 16, 16>;
alias SumUnit = subgroup_matrix_result<f32, 16, 16>;
