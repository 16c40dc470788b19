// out = (quantised - zero_point) * scale, element by element; quantised are bytes, four a word.
// needs: nothing

struct Params {
  count: u32,
  scale: f32,
  zero_point: f32,
}

override IS_SIGNED: bool;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> quantised: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

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
  let byte = extractBits(quantised[index / 4u], 8u * (index % 4u), 8u);
  let value = select(i32(byte), extractBits(i32(byte), 0u, 8u), IS_SIGNED);
  out[index] = (f32(value) - params.zero_point) * params.scale;
}
