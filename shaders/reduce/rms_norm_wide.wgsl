// rms_norm for adapters with cheap workgroup memory: a workgroup for each row, four columns at a time.
// x, residual, out: [rows, width]; weight: [width], width a multiple of four.
// needs: nothing

struct Params {
  rows: u32,
  width: u32,
  eps: f32,
  has_weight: u32,
  has_residual: u32,
  has_factor: u32,
}

override WORKGROUP: u32 = 256u;

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> weight: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4f>;
@group(0) @binding(3) var<uniform> params: Params;
@group(0) @binding(4) var<storage, read> residual: array<vec4f>;
@group(0) @binding(5) var<storage, read> factor: array<f32>;

var<workgroup> sums: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  // A folded grid may have a few workgroups too many: they do the last row again.
  let row = min(group.y * groups.x + group.x, params.rows - 1u);
  let quads = params.width / 4u;
  let first = row * quads;
  var sum_of_squares = 0.0;
  for (var quad = lane; quad < quads; quad += WORKGROUP) {
    let values = x[first + quad];
    sum_of_squares += dot(values, values);
  }
  sums[lane] = sum_of_squares;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) {
      sums[lane] += sums[lane + half];
    }
    workgroupBarrier();
  }
  let scale = inverseSqrt(sums[0] / f32(params.width) + params.eps);
  for (var quad = lane; quad < quads; quad += WORKGROUP) {
    var value = x[first + quad] * scale;
    if (params.has_weight != 0u) {
      value *= weight[quad];
    }
    if (params.has_residual != 0u) {
      value += residual[first + quad];
    }
    if (params.has_factor != 0u) {
      value *= factor[0];
    }
    out[first + quad] = value;
  }
}
