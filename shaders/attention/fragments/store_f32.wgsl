// k and v stored as f32; places are indices of values.
// needs: nothing

@group(0) @binding(0) var<storage, read_write> k_cache: array<f32>;
@group(0) @binding(1) var<storage, read_write> v_cache: array<f32>;

fn store_keys(places: vec2u, values: vec2f) {
  k_cache[places.x] = values.x;
  k_cache[places.y] = values.y;
}

fn store_values(places: vec2u, values: vec2f) {
  v_cache[places.x] = values.x;
  v_cache[places.y] = values.y;
}
