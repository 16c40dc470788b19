// k and v stored as f16, two in a word. Values are neighbours, the first at an even index. Keys may lie
// apart, and then another invocation stores the other half of a word: halves are set by atomics, which
// leave the other half alone.
// needs: nothing

const LARGEST_HALF = 65504.0;

@group(0) @binding(0) var<storage, read_write> k_cache: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> v_cache: array<u32>;

// Values too large for f16 become its largest; NaN stays NaN.
fn halves(values: vec2f) -> u32 {
  let too_large = abs(values) > vec2f(LARGEST_HALF);
  return pack2x16float(select(values, LARGEST_HALF * sign(values), too_large));
}

fn store_key(place: u32, half: u32) {
  let shift = place % 2u * 16u;
  atomicAnd(&k_cache[place / 2u], ~(0xffffu << shift));
  atomicOr(&k_cache[place / 2u], half << shift);
}

fn store_keys(places: vec2u, values: vec2f) {
  let packed = halves(values);
  if (places.y == places.x + 1u) {
    atomicStore(&k_cache[places.x / 2u], packed);
    return;
  }
  store_key(places.x, packed & 0xffffu);
  store_key(places.y, packed >> 16u);
}

fn store_values(places: vec2u, values: vec2f) {
  v_cache[places.x / 2u] = halves(values);
}
