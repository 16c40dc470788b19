// 32 columns of x, as gemv.wgsl takes them.
// needs: nothing

struct Block {
  a: mat2x4f,
  b: mat2x4f,
  c: mat2x4f,
  d: mat2x4f,
  sums: vec4f,  // of each octet's columns
  squares: f32,  // of the columns this invocation loaded
}
