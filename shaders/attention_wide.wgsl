// Attention as in attention.wgsl, for adapters with cheap workgroup memory: a workgroup works on one
// tile and one split together. For scores an invocation takes a position of the block; for weighted
// sums a quad of the head's width and every so many positions ("a part"), in registers to the end.
// Without splits there is nothing to add up, and the result goes to `out` at once.
// The head has at most 64 quads.

const WORKGROUP = 256u;
const BLOCK = WORKGROUP;  // positions at a time; as in py_runtime/attention_streaming.py

@group(0) @binding(0) var<storage, read_write> out: array<vec4f>;  // strides are those of q

var<workgroup> block_weights: array<vec4f, BLOCK>;
var<workgroup> partials: array<vec4f, 4u * WORKGROUP>;

// The largest score of each row and the sum of exp(score - largest), over all invocations.
fn stats_of_all(lane: u32, scores: vec4f) -> Stats {
  var top = scores;
  var sum = select(vec4f(), vec4f(1.0), scores > vec4f(UNSEEN));
  partials[lane] = top;
  partials[WORKGROUP + lane] = sum;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) {
      let other = partials[lane + half];
      let both = max(top, other);
      sum = sum * exp(top - both) + partials[WORKGROUP + lane + half] * exp(other - both);
      top = both;
      partials[lane] = top;
      partials[WORKGROUP + lane] = sum;
    }
    workgroupBarrier();
  }
  let result = Stats(partials[0], partials[WORKGROUP]);
  workgroupBarrier();
  return result;
}

fn scale_columns(m: mat4x4f, by: vec4f) -> mat4x4f {
  return mat4x4f(m[0] * by.x, m[1] * by.y, m[2] * by.z, m[3] * by.w);
}

// The first invocations, one for each quad, get the sum over the parts.
fn sum_of_parts(lane: u32, quads: u32, parts: u32, own: mat4x4f) -> mat4x4f {
  for (var row = 0u; row < 4u; row++) {
    partials[row * WORKGROUP + lane] = own[row];
  }
  workgroupBarrier();
  var total = own;
  if (lane < quads) {
    for (var part = 1u; part < parts; part++) {
      let at = part * quads + lane;
      total += mat4x4f(
        partials[at],
        partials[WORKGROUP + at],
        partials[2u * WORKGROUP + at],
        partials[3u * WORKGROUP + at],
      );
    }
  }
  return total;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) workgroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  // A folded grid may have a few workgroups too many: they do the last one's work again.
  let most = params.splits * params.tiles * params.heads - 1u;
  let index = min(workgroup.y * workgroups.x + workgroup.x, most);
  let split = index / (params.tiles * params.heads);
  let batch = index / params.tiles % params.heads / params.kv_heads;
  let kv_head = index / params.tiles % params.kv_heads;
  let first_row = index % params.tiles * 4u;
  // The last tile's missing rows repeat the last row.
  let rows = min(vec4u(first_row) + vec4u(0, 1, 2, 3), vec4u(params.rows - 1u));
  let tile = Tile(batch, kv_head * params.group + rows % params.group, rows / params.group);
  let q_at = batch * params.q_batch + tile.tokens * params.q_token + tile.heads * params.q_head;
  let kv_at = batch * params.kv_batch + kv_head * params.kv_head;

  let context = context_length();
  let blocks = (context + params.splits * BLOCK - 1u) / (params.splits * BLOCK);  // of a split
  let begin = split * blocks * BLOCK;
  let end = min(min(begin + blocks * BLOCK, context), seen_length(tile));
  let quads = params.width / 4u;
  let parts = WORKGROUP / quads;
  let quad = lane % quads;
  let part = lane / quads;
  var top = vec4f(UNSEEN);
  var sum = vec4f();
  var weighted = mat4x4f();  // columns are the tile's rows, rows the quad's dims
  for (var c = begin; c < end; c += BLOCK) {
    var scores = vec4f(UNSEEN);
    if (c + lane < end) {
      let own = kv_at + (c + lane) * params.kv_token;
      var dots = vec4f();
      for (var at = 0u; at < quads; at++) {
        dots += load_key(own, at) * load_queries(q_at, at);
      }
      scores = seen(dots * params.scale, c + lane, tile);
    }
    let block = stats_of_all(lane, scores);
    let new_top = max(top, block.top);
    let shrink = exp(top - new_top);
    top = new_top;
    sum = sum * shrink + block.sum * exp(block.top - top);
    block_weights[lane] = select(vec4f(), exp(scores - top), scores > vec4f(UNSEEN));
    workgroupBarrier();
    weighted = scale_columns(weighted, shrink);
    if (part < parts) {
      for (var at = part; at < min(BLOCK, end - c); at += parts) {
        let value = load_value(kv_at + (c + at) * params.kv_token, quad);
        let by = block_weights[at];
        weighted += mat4x4f(value * by.x, value * by.y, value * by.z, value * by.w);
      }
    }
    workgroupBarrier();
  }
  let total = sum_of_parts(lane, quads, parts, weighted);
  if (params.splits > 1u) {
    if (lane < quads) {
      sums[index * quads + lane] = total;
    }
    if (lane == 0u) {
      stats[index] = Stats(top, sum);
    }
    return;
  }
  // A row that sees nothing at all is zero, as in torch.
  let share = select(vec4f(), 1.0 / max(sum, vec4f(1e-30)), top > vec4f(UNSEEN));
  for (var row = 0u; row < min(4u, params.rows - first_row) && lane < quads; row++) {
    out[q_at[row] + lane] = total[row] * share[row];
  }
}
