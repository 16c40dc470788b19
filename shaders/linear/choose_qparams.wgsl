// The affine quantisation of each row: scale = (largest - smallest) / (quant_max - quant_min) over the row
// and zero, at least eps; zero point = quant_min - round(smallest / scale), clamped to the two.
// x: [rows, width]; scales: [rows]; zero_points: [rows], bytes in words or words.
// One invocation takes four rows, so that it alone writes a word.
// needs: nothing

struct Params {
  rows: u32,
  width: u32,
  eps: f32,
  quant_min: f32,
  quant_max: f32,
}

override ZEROS_ARE_BYTES: bool;

const WORKGROUP = 64u;
const ROWS = 4u;  // of an invocation

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> scales: array<f32>;
@group(0) @binding(2) var<storage, read_write> zero_points: array<i32>;
@group(0) @binding(3) var<uniform> params: Params;

// Stores the scale of a row and returns its zero point.
fn choose(row: u32) -> i32 {
  var smallest = 0.0;
  var largest = 0.0;
  for (var at = row * params.width; at < (row + 1u) * params.width; at++) {
    smallest = min(smallest, x[at]);
    largest = max(largest, x[at]);
  }
  let scale = max((largest - smallest) / (params.quant_max - params.quant_min), params.eps);
  scales[row] = scale;
  let zero = params.quant_min - round(smallest / scale);
  return i32(clamp(zero, params.quant_min, params.quant_max));
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (ROWS * index >= params.rows) {
    return;
  }
  var word = 0;
  for (var at = 0u; at < ROWS && ROWS * index + at < params.rows; at++) {
    let zero = choose(ROWS * index + at);
    if (ZEROS_ARE_BYTES) {
      word = insertBits(word, zero, 8u * at, 8u);
    } else {
      zero_points[ROWS * index + at] = zero;
    }
  }
  if (ZEROS_ARE_BYTES) {
    zero_points[index] = word;
  }
}
