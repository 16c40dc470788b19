// q, k and v four elements at a time: the head's width is a multiple of four.

@group(0) @binding(3) var<storage, read> q: array<vec4f>;
@group(0) @binding(4) var<storage, read> k: array<vec4f>;
@group(0) @binding(5) var<storage, read> v: array<vec4f>;

fn load_queries(at: vec4u, quad: u32) -> mat4x4f {
  return mat4x4f(q[at.x + quad], q[at.y + quad], q[at.z + quad], q[at.w + quad]);
}

fn load_keys(at: vec4u, quad: u32) -> mat4x4f {
  return mat4x4f(k[at.x + quad], k[at.y + quad], k[at.z + quad], k[at.w + quad]);
}

fn load_values(at: vec4u, quad: u32) -> mat4x4f {
  return mat4x4f(v[at.x + quad], v[at.y + quad], v[at.z + quad], v[at.w + quad]);
}

fn load_key(at: u32, quad: u32) -> vec4f {
  return k[at + quad];
}

fn load_value(at: u32, quad: u32) -> vec4f {
  return v[at + quad];
}
