// Eight columns of eight tokens of x, as gemm.wgsl takes them.
// needs: linear/fragments/io, linear/fragments/x

struct Tokens {
  a: mat2x4f,
  b: mat2x4f,
  c: mat2x4f,
  d: mat2x4f,
  e: mat2x4f,
  f: mat2x4f,
  g: mat2x4f,
  h: mat2x4f,
}

fn live_octet(token: u32, octet: u32) -> mat2x4f {
  return x_octet(live_token(token), octet);
}
