// q, k and v loaded one element at a time, for widths that are no multiple of four; zeros fill up quads.
// needs: nothing

@group(0) @binding(3) var<storage, read> q: array<f32>;
@group(0) @binding(4) var<storage, read> k: array<f32>;
@group(0) @binding(5) var<storage, read> v: array<f32>;

fn load_queries(at: vec4u, quad: u32) -> mat4x4f {
  var loaded = mat4x4f();
  for (var dim = quad * 4u; dim < min(quad * 4u + 4u, params.width); dim++) {
    loaded[0][dim % 4u] = q[at.x + dim];
    loaded[1][dim % 4u] = q[at.y + dim];
    loaded[2][dim % 4u] = q[at.z + dim];
    loaded[3][dim % 4u] = q[at.w + dim];
  }
  return loaded;
}

fn load_keys(at: vec4u, quad: u32) -> mat4x4f {
  var loaded = mat4x4f();
  for (var dim = quad * 4u; dim < min(quad * 4u + 4u, params.width); dim++) {
    loaded[0][dim % 4u] = k[at.x + dim];
    loaded[1][dim % 4u] = k[at.y + dim];
    loaded[2][dim % 4u] = k[at.z + dim];
    loaded[3][dim % 4u] = k[at.w + dim];
  }
  return loaded;
}

fn load_values(at: vec4u, quad: u32) -> mat4x4f {
  var loaded = mat4x4f();
  for (var dim = quad * 4u; dim < min(quad * 4u + 4u, params.width); dim++) {
    loaded[0][dim % 4u] = v[at.x + dim];
    loaded[1][dim % 4u] = v[at.y + dim];
    loaded[2][dim % 4u] = v[at.z + dim];
    loaded[3][dim % 4u] = v[at.w + dim];
  }
  return loaded;
}
