// The parameters of every product x weightᵀ: the shape of the two factors, and where q4gsw's scales lie.
// A kernel's own Params begins with a member `shape` of this type, which takes 64 bytes.
// needs: nothing

struct LinearParams {
  part_ends: vec4u,  // see row_scales of io.wgsl
  part_offsets: vec4u,
  part_strides: vec4u,
  tokens: u32,  // live rows of x
  quads: u32,  // K / 4
  octets: u32,  // ceil(K / 8)
  octets_per_group: u32,  // q4gsw only
}
