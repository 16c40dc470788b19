// Attention as in attend.wgsl, for prompts and images on GPUs with cheap workgroup memory: a workgroup takes
// ROWS query rows and goes through the positions that they see, POSITIONS at a time. Of scores an invocation
// has those of four rows with four positions, of weighted sums those of four rows in up to four quads of the
// head's width. Keys, queries and values pass through workgroup memory, and are loaded one step ahead.
// needs: shared/outer, attention/fragments/io, attention/fragments/tiles, attention/fragments/loads_quads, mask = attention/fragments/mask_*, score = attention/fragments/score_*, sinks = attention/fragments/sinks_*

const SIDE = 16u;  // invocations along the rows, and along positions or quads
const WORKGROUP = SIDE * SIDE;
const ROWS = 4u * SIDE;
const POSITIONS = 4u * SIDE;
const CHUNK = 8u;  // quads of the width that are multiplied at a time
const DIMS = 4u * CHUNK;
const MAX_QUADS = 4u * SIDE;
override QUADS: u32 = 16u;  // the head's width / 4
const VALUES = 2u * WORKGROUP;  // quads of values that are laid out at a time
override AT_ONCE: u32 = 16u;  // positions of these: a divisor of POSITIONS

@group(0) @binding(0) var<storage, read_write> out: array<vec4f>;  // strides are those of q

// Queries and keys, dim by dim: four rows, or positions, in a vector. Then weights: [position][quad of rows]
var<workgroup> tiles: array<vec4f, 2u * DIMS * SIDE>;
var<workgroup> values: array<vec4f, VALUES>;  // [position][quad]; between blocks what invocations tell each other

// Weighted sums of four rows, a column each, in every SIDE-th quad of the width.
struct Weighted {
  a: mat4x4f,
  b: mat4x4f,
  c: mat4x4f,
  d: mat4x4f,
}

struct Places {
  kv_at: u32,
  begin: u32,
  end: u32,
}

// Where the first of four dims, or positions, lies with a quad of rows or positions; the others follow SIDE
// apart. Neither storing nor loading meets one bank of memory twice.
fn place_of(four: u32, quad: u32) -> u32 {
  return 4u * SIDE * four + (quad ^ (four % CHUNK));
}

fn row_starts(rows: vec4u, batch: u32, kv_head: u32) -> vec4u {
  let heads = kv_head * params.group + rows % params.group;
  return batch * params.q_batch + rows / params.group * params.q_token + heads * params.q_head;
}

// Four rows of q, or four positions of k, in a quad of the width: half of the invocations load each.
fn fetch(queries_at: vec4u, places: Places, block: u32, chunk: u32, lane: u32) -> mat4x4f {
  let quad = chunk * CHUNK + lane % CHUNK;
  if (quad >= QUADS) {
    return mat4x4f();
  }
  if (lane < WORKGROUP / 2u) {
    return load_queries(queries_at, quad);
  }
  let first = block + 4u * (lane / CHUNK % SIDE);
  let positions = min(vec4u(first) + vec4u(0, 1, 2, 3), vec4u(places.end - 1u));
  return load_keys(places.kv_at + rows_of(positions) * params.kv_token, quad);
}

fn store_dims(loaded: mat4x4f, lane: u32) {
  let dims = transpose(loaded);
  let at = place_of(lane / (WORKGROUP / 2u) * CHUNK + lane % CHUNK, lane / CHUNK % SIDE);
  tiles[at] = dims[0];
  tiles[at + SIDE] = dims[1];
  tiles[at + 2u * SIDE] = dims[2];
  tiles[at + 3u * SIDE] = dims[3];
}

// Two quads of values, among those of AT_ONCE positions from `position` on.
struct Carried {
  a: vec4f,
  b: vec4f,
}

fn fetch_value(places: Places, position: u32, place: u32) -> vec4f {
  if (place >= AT_ONCE * QUADS) {
    return vec4f();
  }
  let known = min(position + place / QUADS, places.end - 1u);
  return load_value(places.kv_at + row_of(known) * params.kv_token, place % QUADS);
}

fn fetch_values(places: Places, position: u32, lane: u32) -> Carried {
  return Carried(
    fetch_value(places, position, lane),
    fetch_value(places, position, WORKGROUP + lane),
  );
}

fn store_values(loaded: Carried, lane: u32) {
  values[lane] = loaded.a;
  values[WORKGROUP + lane] = loaded.b;
}

fn masked(score: vec4f, position: u32, end: u32, tile: Tile) -> vec4f {
  if (position >= end) {
    return vec4f(MASKED);
  }
  return apply_mask(scored(score), position, tile);
}

fn weight_of(score: vec4f, top: vec4f) -> vec4f {
  return select(vec4f(), exp(score - top), score > vec4f(MASKED));
}

fn scale_all(sums: Weighted, by: vec4f) -> Weighted {
  return Weighted(
    scale_columns(sums.a, by),
    scale_columns(sums.b, by),
    scale_columns(sums.c, by),
    scale_columns(sums.d, by),
  );
}

// Adds what a position's value gives to the sums; past the width it is another one's, and not stored.
fn with_position(before: Weighted, weights: vec4f, value: u32) -> Weighted {
  var sums = before;
  sums.a = with_outer(sums.a, values[value], weights);
  if (QUADS > SIDE) {
    sums.b = with_outer(sums.b, values[value + SIDE], weights);
  }
  if (QUADS > 2u * SIDE) {
    sums.c = with_outer(sums.c, values[value + 2u * SIDE], weights);
    sums.d = with_outer(sums.d, values[value + 3u * SIDE], weights);
  }
  return sums;
}

fn store_rows(sums: mat4x4f, at: vec4u, quad: u32, first_row: u32, share: vec4f) {
  if (quad >= QUADS) {
    return;
  }
  if (first_row < params.rows) {
    out[at.x + quad] = sums[0] * share.x;
  }
  if (first_row + 1u < params.rows) {
    out[at.y + quad] = sums[1] * share.y;
  }
  if (first_row + 2u < params.rows) {
    out[at.z + quad] = sums[2] * share.z;
  }
  if (first_row + 3u < params.rows) {
    out[at.w + quad] = sums[3] * share.w;
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  // A folded grid may have surplus workgroups, which repeat the last one's work.
  let of_head = (params.rows + ROWS - 1u) / ROWS;
  let index = min(group.y * groups.x + group.x, of_head * params.heads - 1u);
  let batch = index / of_head / params.kv_heads;
  let kv_head = index / of_head % params.kv_heads;
  let tile_row = index % of_head * ROWS;
  let down = lane / SIDE;
  let across = lane % SIDE;
  // The last tile's missing rows repeat the last row.
  let last = params.rows - 1u;
  let first_row = tile_row + 4u * down;
  let rows = min(vec4u(first_row) + vec4u(0, 1, 2, 3), vec4u(last));
  let own = Tile(batch, kv_head * params.group + rows % params.group, rows / params.group);
  let ends = vec4u(tile_row, tile_row, vec2u(min(tile_row + ROWS - 1u, last)));
  let whole = Tile(batch, vec4u(kv_head * params.group), ends / params.group);
  let begin = max(context_begin(), visible_begin(whole));
  let end = min(context_length(), visible_end(whole));
  let places = Places(batch * params.kv_batch + kv_head * params.kv_head, begin, end);
  let loaded_row = tile_row + 4u * (lane / CHUNK % SIDE);
  let queries_at = row_starts(min(vec4u(loaded_row) + vec4u(0, 1, 2, 3), vec4u(last)), batch, kv_head);

  var top = vec4f(MASKED);
  var sum = vec4f();  // over this invocation's positions
  var weighted = Weighted();
  var next = mat4x4f();
  if (begin < end) {
    next = fetch(queries_at, places, begin, 0u, lane);
  }
  for (var block = begin; block < end; block += POSITIONS) {
    var scores = mat4x4f();  // a column for each position
    for (var chunk = 0u; chunk * CHUNK < QUADS; chunk++) {
      store_dims(next, lane);
      workgroupBarrier();
      if ((chunk + 1u) * CHUNK < QUADS) {
        next = fetch(queries_at, places, block, chunk + 1u, lane);
      }
      for (var quad = 0u; quad < CHUNK; quad++) {
        let query = place_of(quad, down);
        let key = place_of(CHUNK + quad, across);
        scores = with_outer(scores, tiles[query], tiles[key]);
        scores = with_outer(scores, tiles[query + SIDE], tiles[key + SIDE]);
        scores = with_outer(scores, tiles[query + 2u * SIDE], tiles[key + 2u * SIDE]);
        scores = with_outer(scores, tiles[query + 3u * SIDE], tiles[key + 3u * SIDE]);
      }
      workgroupBarrier();
    }
    var loaded = fetch_values(places, block, lane);
    let position = block + 4u * across;
    scores = mat4x4f(
      masked(scores[0], position, end, own),
      masked(scores[1], position + 1u, end, own),
      masked(scores[2], position + 2u, end, own),
      masked(scores[3], position + 3u, end, own),
    );
    var block_top = max(max(scores[0], scores[1]), max(scores[2], scores[3]));
    values[across * SIDE + down] = block_top;
    workgroupBarrier();
    for (var other = 0u; other < SIDE; other++) {
      block_top = max(block_top, values[other * SIDE + down]);
    }
    let new_top = max(top, block_top);
    let shrink = exp(top - new_top);
    top = new_top;
    let weights = mat4x4f(
      weight_of(scores[0], top),
      weight_of(scores[1], top),
      weight_of(scores[2], top),
      weight_of(scores[3], top),
    );
    sum = sum * shrink + weights[0] + weights[1] + weights[2] + weights[3];
    weighted = scale_all(weighted, shrink);
    let weights_at = place_of(across, down);
    tiles[weights_at] = weights[0];
    tiles[weights_at + SIDE] = weights[1];
    tiles[weights_at + 2u * SIDE] = weights[2];
    tiles[weights_at + 3u * SIDE] = weights[3];
    workgroupBarrier();
    for (var first = 0u; first < min(POSITIONS, end - block); first += AT_ONCE) {
      store_values(loaded, lane);
      workgroupBarrier();
      loaded = fetch_values(places, block + first + AT_ONCE, lane);
      for (var four = 0u; four < AT_ONCE / 4u; four++) {
        let weight = place_of(first / 4u + four, down);
        let value = 4u * four * QUADS + across;
        weighted = with_position(weighted, tiles[weight], value);
        weighted = with_position(weighted, tiles[weight + SIDE], value + QUADS);
        weighted = with_position(weighted, tiles[weight + 2u * SIDE], value + 2u * QUADS);
        weighted = with_position(weighted, tiles[weight + 3u * SIDE], value + 3u * QUADS);
      }
      workgroupBarrier();
    }
    if (block + POSITIONS < end) {
      next = fetch(queries_at, places, block + POSITIONS, 0u, lane);
    }
  }

  values[across * SIDE + down] = sum;
  workgroupBarrier();
  var total = vec4f();
  for (var other = 0u; other < SIDE; other++) {
    total += values[other * SIDE + down];
  }
  // A row whose positions are all masked is zero, as in torch.
  let sums = with_sinks(total, top, own.heads);
  let share = select(vec4f(), 1.0 / max(sums, vec4f(1e-30)), top > vec4f(MASKED));
  let at = row_starts(rows, batch, kv_head);
  store_rows(weighted.a, at, across, first_row, share);
  store_rows(weighted.b, at, across + SIDE, first_row, share);
  store_rows(weighted.c, at, across + 2u * SIDE, first_row, share);
  store_rows(weighted.d, at, across + 3u * SIDE, first_row, share);
}
