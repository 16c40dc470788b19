// Attention as in attend.wgsl, for GPUs with cheap workgroup memory: a workgroup takes one tile and one
// split, a block of positions at a time. Four invocations share a position's scores; for weighted sums an
// invocation takes a quad of the head's width and every so many positions ("a part"), in registers to the
// end. Without splits the result goes straight to `out`.
// needs: lanes = shared/lanes_*, attention/fragments/io, attention/fragments/splits, attention/fragments/tiles, attention/fragments/teams, attention/fragments/loads_quads, mask = attention/fragments/mask_*, score = attention/fragments/score_*, sinks = attention/fragments/sinks_*

override WORKGROUP: u32 = 256u;
override AT_A_TIME: u32 = WORKGROUP / TEAM;  // positions that are scored at once
const STEPS = 2u;
override BLOCK: u32 = STEPS * AT_A_TIME;
const AT_ONCE = 8u;  // values that are loaded at once
override QUADS: u32 = 16u;  // the head's width / 4

@group(0) @binding(0) var<storage, read_write> out: array<vec4f>;  // strides are those of q

var<workgroup> queries: array<mat4x4f, QUADS>;  // a column for each row of the tile
var<workgroup> block_weights: array<vec4f, BLOCK>;
var<workgroup> partials: array<vec4f, 4u * WORKGROUP>;
var<workgroup> part_sums: array<vec4f, WORKGROUP / QUADS + 1u>;  // lanes past the last part write here too

// Computes this invocation's share of one position's scores with the tile's rows.
fn share_of_scores(at: u32, lane: u32) -> vec4f {
  var dots = vec4f();
  for (var quad = lane % TEAM; quad < QUADS; quad += TEAM) {
    dots += load_key(at, quad) * queries[quad];
  }
  return dots;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let lane = own.lane;
  // A folded grid may have surplus workgroups, which repeat the last one's work.
  let most = params.splits * params.tiles * params.heads - 1u;
  let index = min(group.y * groups.x + group.x, most);
  let split = index / (params.tiles * params.heads);
  let batch = index / params.tiles % params.heads / params.kv_heads;
  let kv_head = index / params.tiles % params.kv_heads;
  let first_row = index % params.tiles * TILE_ROWS;
  // The last tile's missing rows repeat the last row.
  let rows = min(vec4u(first_row) + vec4u(0, 1, 2, 3), vec4u(params.rows - 1u));
  let tile = Tile(batch, kv_head * params.group + rows % params.group, rows / params.group);
  let q_at = batch * params.q_batch + tile.tokens * params.q_token + tile.heads * params.q_head;
  let kv_at = batch * params.kv_batch + kv_head * params.kv_head;

  let context = context_length();
  let walked = context - context_begin();
  let steps = (walked + params.splits * STEP - 1u) / (params.splits * STEP);  // of a split
  let own_begin = context_begin() + split * steps * STEP;
  let begin = max(own_begin, visible_begin(tile));
  let end = min(min(own_begin + steps * STEP, context), visible_end(tile));
  let parts = WORKGROUP / QUADS;
  let quad = lane % QUADS;
  let part = lane / QUADS;
  if (lane < QUADS) {
    queries[lane] = load_queries(q_at, lane);
  }
  workgroupBarrier();
  var top = vec4f(MASKED);
  var sum = vec4f();  // over this invocation's part
  var weighted = mat4x4f();  // a column for each row of the tile, a row for each dim of the quad
  for (var c = begin; c < end; c += BLOCK) {
    var scores = array<vec4f, STEPS>();
    for (var step = 0u; step < STEPS; step++) {
      let position = min(c + step * AT_A_TIME + lane / TEAM, end - 1u);
      scores[step] = share_of_scores(kv_at + row_of(position) * params.kv_token, lane);
    }
    var block_top = vec4f(MASKED);
    for (var step = 0u; step < STEPS; step++) {
      let position = c + step * AT_A_TIME + lane / TEAM;
      let dots = sums_of_four(own, scores[step]);
      scores[step] = vec4f(MASKED);
      if (position < end) {
        scores[step] = apply_mask(scored(dots), position, tile);
      }
      block_top = max(block_top, scores[step]);
    }
    let new_top = max(top, each_largest_of_all(own, block_top));
    let shrink = exp(top - new_top);
    top = new_top;
    for (var step = 0u; step < STEPS; step++) {
      let weight = select(vec4f(), exp(scores[step] - top), scores[step] > vec4f(MASKED));
      block_weights[step * AT_A_TIME + lane / TEAM] = weight;
    }
    workgroupBarrier();
    sum *= shrink;
    weighted = scale_columns(weighted, shrink);
    let count = min(BLOCK, end - c);
    for (var first = part; first < count && part < parts; first += AT_ONCE * parts) {
      for (var at = 0u; at < AT_ONCE; at++) {
        let place = first + at * parts;
        let known = min(place, count - 1u);
        let value = load_value(kv_at + row_of(c + known) * params.kv_token, quad);
        let by = select(vec4f(), block_weights[known], place < count);
        sum += by;
        weighted += mat4x4f(value * by.x, value * by.y, value * by.z, value * by.w);
      }
    }
    workgroupBarrier();
  }

  for (var row = 0u; row < 4u; row++) {
    partials[row * WORKGROUP + lane] = weighted[row];
  }
  if (quad == 0u) {
    part_sums[part] = sum;
  }
  workgroupBarrier();
  sum = vec4f();
  for (var at = 0u; at < parts; at++) {
    sum += part_sums[at];
  }
  if (lane == 0u && params.splits > 1u) {
    stats[index] = Stats(top, sum);
  }
  // A row whose positions are all masked is zero, as in torch.
  let whole = with_sinks(sum, top, tile.heads);
  let share = select(vec4f(), 1.0 / max(whole, vec4f(1e-30)), top > vec4f(MASKED));
  for (var place = lane; place < 4u * QUADS; place += WORKGROUP) {
    let row = place / QUADS;
    let own_quad = place % QUADS;
    var total = vec4f();
    for (var at = 0u; at < parts; at++) {
      total += partials[row * WORKGROUP + at * QUADS + own_quad];
    }
    if (params.splits > 1u) {
      sums[index * QUADS + own_quad][row] = total;
    } else if (first_row + row < params.rows) {
      out[q_at[row] + own_quad] = total * share[row];
    }
  }
}
