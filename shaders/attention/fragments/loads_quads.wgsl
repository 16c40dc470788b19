// q, k and v loaded four elements at a time: the head's width is a multiple of four.
// needs: kv = attention/fragments/kv_*

@group(0) @binding(3) var<storage, read> q: array<vec4f>;

fn load_queries(at: vec4u, quad: u32) -> mat4x4f {
  return mat4x4f(q[at.x + quad], q[at.y + quad], q[at.z + quad], q[at.w + quad]);
}

fn load_keys(at: vec4u, quad: u32) -> mat4x4f {
  return mat4x4f(
    key_quad(at.x + quad),
    key_quad(at.y + quad),
    key_quad(at.z + quad),
    key_quad(at.w + quad),
  );
}

fn load_values(at: vec4u, quad: u32) -> mat4x4f {
  return mat4x4f(
    value_quad(at.x + quad),
    value_quad(at.y + quad),
    value_quad(at.z + quad),
    value_quad(at.w + quad),
  );
}

fn load_query(at: u32, quad: u32) -> vec4f {
  return q[at + quad];
}

fn load_key(at: u32, quad: u32) -> vec4f {
  return key_quad(at + quad);
}

fn load_value(at: u32, quad: u32) -> vec4f {
  return value_quad(at + quad);
}
