// k and v stored as f32, four values at a time.
// needs: nothing

@group(0) @binding(0) var<storage, read> k: array<vec4f>;
@group(0) @binding(1) var<storage, read> v: array<vec4f>;

fn key_quad(at: u32) -> vec4f {
  return k[at];
}

fn value_quad(at: u32) -> vec4f {
  return v[at];
}
