// k and v stored as f16, four values at a time.
// needs: nothing

@group(0) @binding(0) var<storage, read> k: array<vec2u>;
@group(0) @binding(1) var<storage, read> v: array<vec2u>;

fn quad_of(halves: vec2u) -> vec4f {
  return vec4f(unpack2x16float(halves.x), unpack2x16float(halves.y));
}

fn key_quad(at: u32) -> vec4f {
  return quad_of(k[at]);
}

fn value_quad(at: u32) -> vec4f {
  return quad_of(v[at]);
}
