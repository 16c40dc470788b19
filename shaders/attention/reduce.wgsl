// The reduction of attend.wgsl's splits: one invocation for each tile and quad.
// needs: attention/fragments/tiles, sinks = attention/fragments/sinks_*

struct Params {
  q_batch: u32,  // strides of out, in f32
  q_token: u32,
  q_head: u32,
  kv_heads: u32,
  group: u32,
  heads: u32,
  rows: u32,
  tiles: u32,
  splits: u32,
  width: u32,
}

override WORKGROUP: u32 = 32u;

@group(0) @binding(0) var<storage, read> sums: array<mat4x4f>;  // [splits, heads, tiles, quads]
@group(0) @binding(1) var<storage, read> stats: array<Stats>;  // [splits, heads, tiles]
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

fn store_row(row: u32, batch: u32, kv_head: u32, quad: u32, values: vec4f) {
  if (row >= params.rows) {
    return;
  }
  let head = kv_head * params.group + row % params.group;
  let at = batch * params.q_batch + row / params.group * params.q_token + head * params.q_head;
  for (var dim = quad * 4u; dim < min(quad * 4u + 4u, params.width); dim++) {
    out[at + dim] = values[dim % 4u];
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) workgroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (workgroup.y * workgroups.x + workgroup.x) * WORKGROUP + lane;
  let quads = (params.width + 3u) / 4u;
  let quad = index % quads;
  let tile = index / quads;  // of all heads
  let tiles = params.heads * params.tiles;
  if (tile >= tiles) {
    return;
  }

  var top = vec4f(MASKED);
  for (var split = 0u; split < params.splits; split++) {
    top = max(top, stats[split * tiles + tile].top);
  }
  var sum = vec4f();
  var total = mat4x4f();
  for (var split = 0u; split < params.splits; split++) {
    let part = stats[split * tiles + tile];
    if (all(part.sum == vec4f())) {
      continue;  // the split had no positions and wrote no sums
    }
    let worth = exp(part.top - top);
    sum += part.sum * worth;
    let values = sums[(split * tiles + tile) * quads + quad];
    total += mat4x4f(
      values[0] * worth.x,
      values[1] * worth.y,
      values[2] * worth.z,
      values[3] * worth.w,
    );
  }

  // A row whose positions are all masked is zero, as in torch.
  let row = tile % params.tiles * TILE_ROWS;
  let head = tile / params.tiles;
  let batch = head / params.kv_heads;
  let kv_head = head % params.kv_heads;
  let heads = kv_head * params.group + (vec4u(row) + vec4u(0, 1, 2, 3)) % params.group;
  let whole = with_sinks(sum, top, heads);
  let share = select(vec4f(), 1.0 / max(whole, vec4f(1e-30)), top > vec4f(MASKED));
  store_row(row, batch, kv_head, quad, total[0] * share.x);
  store_row(row + 1u, batch, kv_head, quad, total[1] * share.y);
  store_row(row + 2u, batch, kv_head, quad, total[2] * share.z);
  store_row(row + 3u, batch, kv_head, quad, total[3] * share.w);
}
