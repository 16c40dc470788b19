// One token in scaled halves in workgroup memory, for gemv_f16.wgsl: the part that does not depend on the kind
// of weights.
// needs: linear/fragments/pair_tile

const MAX_TILE = 112u;  // as many blocks fit the memory of every workgroup
const MAX_OCTETS = 8u;

// 32 columns of x.
struct Columns {
  octets: array<vec4u, 4>,
  sums: vec2f,  // of the columns that share a scale of the weight
  scale: f32,
}

var<workgroup> x_tile: array<Columns, TILE>;
