// Attention of a few query rows, such as one token's: a workgroup for each row and split. Four invocations
// share a position's score; then each takes a quad of the head's width and every so many positions ("a
// part"). All loads of a block of positions are issued at once. Without splits the result goes straight to
// `out`.
// needs: lanes = shared/lanes_*, attention/fragments/io, attention/fragments/splits, attention/fragments/tiles, attention/fragments/teams, attention/fragments/loads_quads, mask = attention/fragments/mask_*, score = attention/fragments/score_*, sinks = attention/fragments/sinks_*

override WORKGROUP: u32 = 256u;
override QUADS: u32 = 16u;  // the head's width / 4
override BLOCK: u32 = WORKGROUP / TEAM;  // positions taken at a time
override PARTS: u32 = WORKGROUP / QUADS;
override LOADS: u32 = (BLOCK + PARTS - 1u) / PARTS;  // values that an invocation loads for a block
// Beyond it, for heads wider than 272, a value is loaded when it is used. Measured on an H200 with such
// loads for all heads: one token of a 1B model takes 4 % longer at context 128.
const MAX_LOADS = 17u;

@group(0) @binding(0) var<storage, read_write> out: array<vec4f>;  // strides are those of q

var<workgroup> block_weights: array<f32, BLOCK>;
var<workgroup> partials: array<vec4f, WORKGROUP>;
var<workgroup> part_sums: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let lane = own.lane;
  // A folded grid may have surplus workgroups, which repeat the last one's work.
  let most = params.splits * params.rows * params.heads - 1u;
  let index = min(group.y * groups.x + group.x, most);
  let split = index / (params.rows * params.heads);
  let head = index / params.rows % params.heads;  // of all batches
  let batch = head / params.kv_heads;
  let kv_head = head % params.kv_heads;
  let row = index % params.rows;
  let token = row / params.group;
  let q_head = kv_head * params.group + row % params.group;
  let tile = Tile(batch, vec4u(q_head), vec4u(token));
  let q_at = batch * params.q_batch + token * params.q_token + q_head * params.q_head;
  let kv_at = batch * params.kv_batch + kv_head * params.kv_head;

  let context = context_length();
  let walked = context - context_begin();
  let steps = (walked + params.splits * STEP - 1u) / (params.splits * STEP);  // of a split
  let own_begin = context_begin() + split * steps * STEP;
  let begin = max(own_begin, visible_begin(tile));
  let end = min(min(own_begin + steps * STEP, context), visible_end(tile));
  let quad = lane % QUADS;
  let part = lane / QUADS;
  var top = MASKED;
  var sum = 0.0;  // over this invocation's part
  var weighted = vec4f();
  for (var c = begin; c < end; c += BLOCK) {
    let position = c + lane / TEAM;
    let key = kv_at + row_of(min(position, end - 1u)) * params.kv_token;
    var score = 0.0;
    for (var at = lane % TEAM; at < QUADS; at += TEAM) {
      score += dot(load_key(key, at), load_query(q_at, at));
    }
    let count = min(BLOCK, end - c);
    var values = array<vec4f, MAX_LOADS>();
    if (LOADS <= MAX_LOADS) {
      for (var at = 0u; at < LOADS; at++) {
        let known = c + min(part + at * PARTS, count - 1u);
        values[at] = load_value(kv_at + row_of(known) * params.kv_token, quad);
      }
    }
    score = sum_of_four(own, score);
    var scores = vec4f(MASKED);
    if (position < end) {
      scores = apply_mask(scored(vec4f(score)), position, tile);
    }
    let new_top = max(top, largest_of_all(own, scores.x));
    block_weights[lane / TEAM] = select(0.0, exp(scores.x - new_top), scores.x > MASKED);
    workgroupBarrier();
    let shrink = exp(top - new_top);
    top = new_top;
    sum *= shrink;
    weighted *= shrink;
    for (var at = 0u; at < LOADS; at++) {
      let place = part + at * PARTS;
      let by = select(0.0, block_weights[min(place, BLOCK - 1u)], place < count);
      sum += by;
      if (LOADS > MAX_LOADS) {
        let known = c + min(place, count - 1u);
        weighted += by * load_value(kv_at + row_of(known) * params.kv_token, quad);
      } else {
        weighted += by * values[at];
      }
    }
  }

  partials[lane] = weighted;
  if (quad == 0u) {
    part_sums[part] = sum;
  }
  workgroupBarrier();
  if (lane >= QUADS) {
    return;
  }
  sum = 0.0;
  weighted = vec4f();
  for (var at = 0u; at < PARTS; at++) {
    sum += part_sums[at];
    weighted += partials[at * QUADS + lane];
  }
  if (params.splits > 1u) {
    // Store it as a row of the tile that reduce_wide.wgsl expects.
    let place = (split * params.heads + head) * params.tiles + row / TILE_ROWS;
    sums[place * QUADS + lane][row % TILE_ROWS] = weighted;
    if (lane == 0u) {
      stats[place].top[row % TILE_ROWS] = top;
      stats[place].sum[row % TILE_ROWS] = sum;
    }
    return;
  }
  // A row whose positions are all masked is zero, as in torch.
  let whole = with_sinks(vec4f(sum), vec4f(top), tile.heads).x;
  let share = select(0.0, 1.0 / max(whole, 1e-30), top > MASKED);
  out[q_at + lane] = weighted * share;
}
