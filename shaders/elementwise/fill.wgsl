// out = first + index * step, in f32 or i32; with step 0, whatever 32 bits `first` has.
// needs: nothing

struct Params {
  count: u32,
  first: u32,
  step: u32,
  is_float: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index >= params.count) {
    return;
  }
  var value = params.first;
  if (params.step != 0u) {
    if (params.is_float == 1u) {
      let sum = bitcast<f32>(params.first) + f32(index) * bitcast<f32>(params.step);
      value = bitcast<u32>(sum);
    } else {
      value += index * params.step;
    }
  }
  out[index] = value;
}
