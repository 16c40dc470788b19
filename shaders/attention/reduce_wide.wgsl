// The reduction of attend_wide.wgsl's splits: a workgroup for each row of a tile, in which an invocation
// takes a quad of the head's width and every so many splits ("a part").
// needs: attention/fragments/tiles, sinks = attention/fragments/sinks_*

struct Params {
  q_batch: u32,  // strides of out, in quads
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

override WORKGROUP: u32 = 256u;
const MAX_SPLITS = 64u;
override QUADS: u32 = 16u;  // the head's width / 4

@group(0) @binding(0) var<storage, read> sums: array<mat4x4f>;  // [splits, heads, tiles, quads]
@group(0) @binding(1) var<storage, read> stats: array<Stats>;  // [splits, heads, tiles]
@group(0) @binding(2) var<storage, read_write> out: array<vec4f>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> tops: array<f32, MAX_SPLITS>;
var<workgroup> split_sums: array<f32, MAX_SPLITS>;
var<workgroup> partials: array<vec4f, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) workgroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let tiles = params.heads * params.tiles;
  // A folded grid may have surplus workgroups, which repeat the last one's work.
  let index = min(workgroup.y * workgroups.x + workgroup.x, TILE_ROWS * tiles - 1u);
  let tile = index / TILE_ROWS;  // of all heads
  let row_of_tile = index % TILE_ROWS;
  let row = tile % params.tiles * TILE_ROWS + row_of_tile;
  if (row >= params.rows) {
    return;
  }
  let parts = WORKGROUP / QUADS;
  let quad = lane % QUADS;
  let part = lane / QUADS;
  if (lane < params.splits) {
    tops[lane] = stats[lane * tiles + tile].top[row_of_tile];
    split_sums[lane] = stats[lane * tiles + tile].sum[row_of_tile];
  }
  workgroupBarrier();
  var top = MASKED;
  for (var split = 0u; split < params.splits; split++) {
    top = max(top, tops[split]);
  }
  var sum = 0.0;
  for (var split = 0u; split < params.splits; split++) {
    sum += split_sums[split] * exp(tops[split] - top);
  }
  var total = vec4f();
  for (var split = part; split < params.splits && part < parts; split += parts) {
    total += sums[(split * tiles + tile) * QUADS + quad][row_of_tile] * exp(tops[split] - top);
  }
  partials[lane] = total;
  workgroupBarrier();
  if (lane >= QUADS) {
    return;
  }
  for (var at = 1u; at < parts; at++) {
    total += partials[at * QUADS + lane];
  }
  // A row whose positions are all masked is zero, as in torch.
  let head = tile / params.tiles;
  let q_head = head % params.kv_heads * params.group + row % params.group;
  let whole = with_sinks(vec4f(sum), vec4f(top), vec4u(q_head)).x;
  let share = select(0.0, 1.0 / max(whole, 1e-30), top > MASKED);
  let place = head / params.kv_heads * params.q_batch
    + row / params.group * params.q_token + q_head * params.q_head;
  out[place + lane] = total * share;
}
