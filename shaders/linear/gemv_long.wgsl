// One line of x and weights with long rows, in blocks of 32 columns. A
// workgroup lays x out in its memory, as many blocks at a time as fit; a team of its invocations
// takes one or two pairs of rows, a block of each at a time, and adds up in the end. Loads of weights
// are a step ahead. More of them at once, unrolled, are no gain: a device that goes from kernel to
// kernel finds the code of each in no cache, and long code costs more than it saves.
// needs: lanes = shared/lanes_*, linear/fragments/io, linear/fragments/norm, blocks = shared/weights/blocks_*, finish = linear/fragments/finish_*, @pair_rows

override WORKGROUP: u32 = 256u;
override TEAM: u32 = 32u;
override TWO_PAIRS: bool = false;
override TILE: u32 = 128u;  // blocks that are laid out at a time, a multiple of TEAM
override LOADS: u32 = 8u * TILE / WORKGROUP;  // of x, by each invocation
override TEAMS: u32 = WORKGROUP / TEAM;
const MAX_LOADS = 16u;

// A block's quads lie TILE + 1 apart: neighbours write, and later read, different banks.
var<workgroup> x_tile: array<vec4f, 8u * (TILE + 1u)>;
var<workgroup> quad_sums: array<vec4f, WORKGROUP / 4u>;  // of four invocations each

// 32 columns of x.
struct Columns {
  low: mat4x4f,
  high: mat4x4f,
}

struct Held {
  a: WeightBlock,
  b: WeightBlock,
  c: WeightBlock,
  d: WeightBlock,
}

fn fetch(rows: vec4u, block: u32) -> Held {
  let known = min(block, params.octets / 4u - 1u);  // what lies past the end is not used
  var held: Held;
  held.a = load_block(rows.x, known);
  held.b = load_block(rows.y, known);
  if (TWO_PAIRS) {
    held.c = load_block(rows.z, known);
    held.d = load_block(rows.w, known);
  }
  return held;
}

// Gives this invocation's share of the squares that the norm divides by.
fn lay_out(first_block: u32, lane: u32) -> f32 {
  var values = array<vec4f, MAX_LOADS>();
  var squares = 0.0;
  for (var at = 0u; at < LOADS; at++) {
    let quad = 8u * first_block + at * WORKGROUP + lane;
    let known = min(quad, params.quads - 1u);
    values[at] = select(vec4f(), x[known], quad < params.quads);
    if (NORMED) {
      squares += dot(values[at], values[at]);
      values[at] *= norm[known];
    }
  }
  for (var at = 0u; at < LOADS; at++) {
    let place = at * WORKGROUP + lane;
    x_tile[place % 8u * (TILE + 1u) + place / 8u] = values[at];
  }
  return squares;
}

fn columns_of(place: u32) -> Columns {
  return Columns(
    mat4x4f(
      x_tile[place],
      x_tile[place + TILE + 1u],
      x_tile[place + 2u * (TILE + 1u)],
      x_tile[place + 3u * (TILE + 1u)],
    ),
    mat4x4f(
      x_tile[place + 4u * (TILE + 1u)],
      x_tile[place + 5u * (TILE + 1u)],
      x_tile[place + 6u * (TILE + 1u)],
      x_tile[place + 7u * (TILE + 1u)],
    ),
  );
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let lane = own.lane;
  let pairs = select(1u, 2u, TWO_PAIRS);
  let first_pair = (group.y * groups.x + group.x) * (pairs * TEAMS);
  let pair = first_pair + pairs * (lane / TEAM);
  let rows = vec4u(pair_rows(pair), pair_rows(pair + 1u));
  let blocks = params.octets / 4u;
  var next = fetch(rows, lane % TEAM);
  var sums = vec4f();
  var squares = 0.0;
  for (var tile = 0u; tile < blocks; tile += TILE) {
    workgroupBarrier();
    squares += lay_out(tile, lane);
    workgroupBarrier();
    let count = min(TILE, blocks - tile);
    for (var place = lane % TEAM; place < count; place += TEAM) {
      let now = next;
      next = fetch(rows, tile + place + TEAM);
      let columns = columns_of(place);
      sums.x += block_dot(now.a, columns);
      sums.y += block_dot(now.b, columns);
      if (TWO_PAIRS) {
        sums.z += block_dot(now.c, columns);
        sums.w += block_dot(now.d, columns);
      }
    }
  }
  quad_sums[lane / 4u] = sums_of_four(own, sums);
  if (NORMED) {
    squares = sum_of_all(own, squares);
  }
  workgroupBarrier();
  if (lane >= pairs * TEAMS || first_pair + lane >= params.pairs) {
    return;
  }
  sums = vec4f();
  for (var at = 0u; at < TEAM / 4u; at++) {
    sums += quad_sums[lane / pairs * (TEAM / 4u) + at];
  }
  let of_pair = select(sums.xy, sums.zw, lane % pairs == 1u);
  store_pair(0u, first_pair + lane, norm_scale(squares) * of_pair);
}
