// quantised = clamp(round(x * inverse_scale) + zero_point, quant_min, quant_max), four bytes a word.
// Infinities are the ends of the range; NaN is 0, which is what torch makes of it.
// needs: nothing

struct Params {
  count: u32,
  inverse_scale: f32,
  zero_point: f32,
  quant_min: f32,
  quant_max: f32,
}

const WORKGROUP = 64u;
const BYTES = 4u;  // of a word; an invocation writes one
const INFINITY = 0x7f800000u;

// As bits, because compilers of shaders may assume that no float is infinite or NaN.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> quantised: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

fn quantise(bits: u32) -> i32 {
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > INFINITY) {
    return 0;
  }
  if (magnitude == INFINITY) {
    return i32(select(params.quant_min, params.quant_max, bits == INFINITY));
  }
  let value = round(bitcast<f32>(bits) * params.inverse_scale) + params.zero_point;
  return i32(clamp(value, params.quant_min, params.quant_max));
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (BYTES * index >= params.count) {
    return;
  }
  var word = 0u;
  for (var at = 0u; at < min(BYTES, params.count - BYTES * index); at++) {
    word = insertBits(word, u32(quantise(x[BYTES * index + at])), 8u * at, 8u);
  }
  quantised[index] = word;
}
