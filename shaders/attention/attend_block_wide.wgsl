// Attention of many query rows, such as a prompt's: a workgroup takes a few tiles of rows side by side, so
// that keys and values are read once for all of them. Each tile has a group of invocations. For a block of
// positions, keys go through workgroup memory in chunks of the head's width, and an invocation computes one
// position's scores; then it takes a quad of the width and every so many positions ("a part"). Without
// splits the result goes straight to `out`.
// needs: attention/fragments/io, attention/fragments/tiles, attention/fragments/teams, attention/fragments/loads_quads, mask = attention/fragments/mask_*, score = attention/fragments/score_*, sinks = attention/fragments/sinks_*

const WORKGROUP = 128u;
override QUADS: u32 = 16u;  // the head's width / 4
override GROUP: u32 = 32u;  // invocations of a tile, at least QUADS
override TILES: u32 = WORKGROUP / GROUP;
override BLOCK: u32 = GROUP;  // positions
const CHUNK_VECTORS = 256u;
override CHUNK: u32 = CHUNK_VECTORS / BLOCK;  // quads of a key
override CHUNKS: u32 = (QUADS + CHUNK - 1u) / CHUNK;
override PARTS: u32 = GROUP / QUADS;
const LOADS = 4u;  // values that an invocation loads at once

@group(0) @binding(0) var<storage, read_write> out: array<vec4f>;  // strides are those of q

var<workgroup> queries: array<mat4x4f, TILES * QUADS>;  // columns are a tile's rows
var<workgroup> keys: array<vec4f, CHUNK_VECTORS>;  // [quad][position], positions swizzled by the quad
var<workgroup> scores: array<vec4f, WORKGROUP>;  // [tile][position]
var<workgroup> weights: array<vec4f, WORKGROUP>;

struct Keys {
  first: vec4f,
  second: vec4f,
}

fn key_of(place: u32, chunk: u32, at: u32, c: u32, end: u32) -> vec4f {
  let quad = min(chunk * CHUNK + place % CHUNK, QUADS - 1u);
  let position = min(c + place / CHUNK, end - 1u);
  return load_key(at + row_of(position) * params.kv_token, quad);
}

// Loads an invocation's two vectors of a chunk.
fn fetch(lane: u32, chunk: u32, at: u32, c: u32, end: u32) -> Keys {
  return Keys(key_of(lane, chunk, at, c, end), key_of(lane + WORKGROUP, chunk, at, c, end));
}

// Neighbours store quads of one position and read positions of one quad: the swizzle avoids bank conflicts.
fn place_of(quad: u32, position: u32) -> u32 {
  return quad * BLOCK + (position ^ quad);
}

fn put_down(lane: u32, fetched: Keys) {
  keys[place_of(lane % CHUNK, lane / CHUNK)] = fetched.first;
  keys[place_of(lane % CHUNK, (lane + WORKGROUP) / CHUNK)] = fetched.second;
}

fn tile_of(batch: u32, kv_head: u32, first_row: u32) -> Tile {
  // Missing rows repeat the last one.
  let rows = min(vec4u(first_row) + vec4u(0, 1, 2, 3), vec4u(params.rows - 1u));
  return Tile(batch, kv_head * params.group + rows % params.group, rows / params.group);
}

fn places_of(tile: Tile) -> vec4u {
  return tile.batch * params.q_batch + tile.tokens * params.q_token + tile.heads * params.q_head;
}

// Adds up the parts, for the lanes of the first part.
fn add_parts(lane: u32, own: vec4f) -> vec4f {
  workgroupBarrier();
  keys[lane] = own;
  workgroupBarrier();
  let first = lane / GROUP * GROUP + lane % GROUP % QUADS;
  var total = vec4f();
  for (var part = 0u; part < PARTS; part++) {
    total += keys[first + part * QUADS];
  }
  return total;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let blocks = (params.tiles + TILES - 1u) / TILES;  // of a head's rows
  // A folded grid may have surplus workgroups, which repeat the last one's work.
  let most = params.splits * blocks * params.heads - 1u;
  let index = min(group.y * groups.x + group.x, most);
  let split = index / (blocks * params.heads);
  let head = index / blocks % params.heads;  // of all batches
  let batch = head / params.kv_heads;
  let kv_head = head % params.kv_heads;
  let first_tile = index % blocks * TILES;
  let own = lane / GROUP;  // tile within the workgroup
  let first_row = (first_tile + own) * TILE_ROWS;
  let tile = tile_of(batch, kv_head, first_row);
  let kv_at = batch * params.kv_batch + kv_head * params.kv_head;

  let context = context_length();
  let walked = context - context_begin();
  let steps = (walked + params.splits * STEP - 1u) / (params.splits * STEP);  // of a split
  let own_begin = context_begin() + split * steps * STEP;
  let first = tile_of(batch, kv_head, first_tile * TILE_ROWS);
  let last = tile_of(batch, kv_head, (first_tile + TILES - 1u) * TILE_ROWS);
  let begin = max(own_begin, visible_begin(first));
  let end = min(min(own_begin + steps * STEP, context), visible_end(last));
  for (var place = lane; place < TILES * QUADS; place += WORKGROUP) {
    let rows = tile_of(batch, kv_head, (first_tile + place / QUADS) * TILE_ROWS);
    queries[place] = load_queries(places_of(rows), place % QUADS);
  }
  let place = lane % GROUP;  // position within its block
  let quad = place % QUADS;
  let part = place / QUADS;
  var top = vec4f(MASKED);
  var sum = vec4f();  // over this invocation's part
  var weighted = mat4x4f();  // a column for each row of the tile, a row for each dim of the quad
  var next = fetch(lane, 0u, kv_at, begin, max(end, 1u));
  for (var c = begin; c < end; c += BLOCK) {
    var dots = vec4f();
    for (var chunk = 0u; chunk < CHUNKS; chunk++) {
      put_down(lane, next);
      workgroupBarrier();
      // Prefetch the next keys while these are multiplied.
      let is_last = chunk + 1u == CHUNKS;
      next = fetch(lane, select(chunk + 1u, 0u, is_last), kv_at, select(c, c + BLOCK, is_last), end);
      let count = min(CHUNK, QUADS - chunk * CHUNK);
      for (var at = 0u; at < count; at++) {
        dots += keys[place_of(at, place)] * queries[own * QUADS + chunk * CHUNK + at];
      }
      workgroupBarrier();
    }
    var own_scores = vec4f(MASKED);
    if (c + place < end) {
      own_scores = apply_mask(scored(dots), c + place, tile);
    }
    scores[lane] = own_scores;
    workgroupBarrier();
    var new_top = top;
    for (var at = 0u; at < BLOCK; at++) {
      new_top = max(new_top, scores[own * GROUP + at]);
    }
    weights[lane] = select(vec4f(), exp(own_scores - new_top), own_scores > vec4f(MASKED));
    workgroupBarrier();
    let shrink = exp(top - new_top);
    top = new_top;
    sum *= shrink;
    weighted = scale_columns(weighted, shrink);
    for (var at = part; at < BLOCK && part < PARTS; at += LOADS * PARTS) {
      var values: array<vec4f, LOADS>;
      for (var load = 0u; load < LOADS; load++) {
        let position = min(c + at + load * PARTS, end - 1u);
        values[load] = load_value(kv_at + row_of(position) * params.kv_token, quad);
      }
      for (var load = 0u; load < LOADS; load++) {
        let place = at + load * PARTS;
        // Positions past the end have no weight.
        let by = select(vec4f(), weights[own * GROUP + min(place, BLOCK - 1u)], place < BLOCK);
        let value = values[load];
        sum += by;
        weighted += mat4x4f(value * by.x, value * by.y, value * by.z, value * by.w);
      }
    }
  }

  let total_sum = add_parts(lane, sum);
  // A row whose positions are all masked is zero, as in torch.
  let whole = with_sinks(total_sum, top, tile.heads);
  let share = select(vec4f(), 1.0 / max(whole, vec4f(1e-30)), top > vec4f(MASKED));
  let q_at = places_of(tile);
  let tile_index = (split * params.heads + head) * params.tiles + first_tile + own;
  let is_stored = part == 0u && first_tile + own < params.tiles;
  if (is_stored && quad == 0u && params.splits > 1u) {
    stats[tile_index] = Stats(top, total_sum);
  }
  for (var row = 0u; row < TILE_ROWS; row++) {
    let total = add_parts(lane, weighted[row]);
    if (is_stored && params.splits > 1u) {
      sums[tile_index * QUADS + quad][row] = total;
    } else if (is_stored && first_row + row < params.rows) {
      out[q_at[row] + quad] = total * share[row];
    }
  }
}
