// 32 columns of x, as linear_gemv.wgsl takes them.

struct Block {
  a: mat2x4f,
  b: mat2x4f,
  c: mat2x4f,
  d: mat2x4f,
  sums: vec4f,  // of each octet
  squares: f32,  // this invocation's share of them
}
