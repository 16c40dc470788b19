// One token as three int8 planes in workgroup memory, for gemv_int8.wgsl: the part that does not depend on
// the kind of weights.
// needs: linear/fragments/pair_tile, linear/fragments/int8_planes

const MAX_TILE = 96u;  // as many blocks fit the memory of every workgroup
const MAX_OCTETS = 8u;

const FINE = 254.0;  // a unit of the third plane is this many times smaller than one of the low plane

// 32 columns of x. A vector has eight: the high bytes of the first four and of the others, then the low ones.
struct Columns {
  planes: array<vec4u, 4>,
  fine: array<vec2u, 4>,
  sums: vec2f,  // of the columns that share a scale of the weight
  scale: f32,  // the padding behind it keeps neighbours in different banks
}

var<workgroup> x_tile: array<Columns, TILE>;

fn fine_plane(columns: vec4f) -> u32 {
  return low_bytes(low_halves((columns - round(columns)) * FINE + ROUNDER));
}
