// One line of x, and weights in blocks of 32 columns (blocks_q8_0.wgsl says what is known of them).
// Columns of x become whole numbers, a block with one scale, cut into three signed bytes ("limbs"): as
// exact as floats, and dot4I8Packed multiplies four columns at once, where floats cost several
// instructions for each. A workgroup lays x out so, as many blocks at a time as fit. Its invocations
// take a block of a pair of rows each: BESIDE neighbours share a line of memory, GROUP_PAIRS such teams
// lie one pair below the other (their scales may be stored by rows), and the rest takes the columns
// further on. Weights are loaded a step ahead.
// needs: linear/fragments/norm, row = linear/fragments/row_*, linear/fragments/limbs, blocks = shared/weights/blocks_*, shared/weights/order, finish = linear/fragments/finish_*, @pair_rows

override WORKGROUP: u32 = 256u;
override BESIDE: u32 = 4u;
override GROUP_PAIRS: u32 = 16u;
override STEPS: u32 = 1u;  // blocks that an invocation loads at a time
override TILE: u32 = 96u;  // blocks of x laid out at a time: a multiple of STEPS * TEAM, WORKGROUP / 4 or more
override TEAM: u32 = WORKGROUP / GROUP_PAIRS;  // invocations that share a pair
override OCTETS: u32 = (4u * TILE + WORKGROUP - 1u) / WORKGROUP;  // of a tile, an invocation's share
const MAX_OCTETS = 8u;
const MAX_STEPS = 2u;
const HALF_OCTETS = 4u / HALVES;
const ADDERS = 16u;  // invocations that add up the squares

const FINE = 254.0;  // what the third limb counts is so many times smaller than the others

// 32 columns of x, eight in a vector of words: the first four's high limbs, the others', the low ones.
struct Columns {
  limbs: array<vec4u, 4>,
  fine: array<vec2u, 4>,
  sums: vec2f,  // of the columns that share a scale of the weight
  scale: f32,  // the padding behind it keeps neighbours in different banks
}

struct Held {
  upper: array<WeightBlock, MAX_STEPS>,
  lower: array<WeightBlock, MAX_STEPS>,
}

var<workgroup> x_tile: array<Columns, TILE>;
var<workgroup> octet_facts: array<vec2f, 4u * TILE>;  // the largest and the sum; later the squares
var<workgroup> partials: array<vec2f, WORKGROUP>;

fn fetch(rows: vec2u, first: u32) -> Held {
  var held: Held;
  for (var step = 0u; step < STEPS; step++) {
    let block = min(first + step * TEAM, params.octets / 4u - 1u);  // x is zero past the end
    held.upper[step] = load_block(rows.x, block);
    held.lower[step] = load_block(rows.y, block);
  }
  return held;
}

fn cut(block: u32, octet_of_block: u32, octet: mat2x4f, by: f32) {
  let columns = by * grouped(octet);
  x_tile[block].limbs[octet_of_block] = two_limbs(columns);
  x_tile[block].fine[octet_of_block] = vec2u(fine_limb(columns[0]), fine_limb(columns[1]));
}

fn fine_limb(columns: vec4f) -> u32 {
  return low_bytes(low_halves((columns - round(columns)) * FINE + ROUNDER));
}

// Gives this invocation's share of the squares that the norm divides by.
fn lay_out(first_block: u32, lane: u32) -> f32 {
  var octets = array<mat2x4f, MAX_OCTETS>();
  var squares = 0.0;
  for (var at = 0u; at < OCTETS; at++) {
    let place = at * WORKGROUP + lane;
    let octet = 4u * first_block + place;
    if (place < 4u * TILE && octet < params.octets) {
      let own = normed_octet(octet);
      squares += own.squares;
      octets[at] = own.values;
      octet_facts[place] = vec2f(top_of(own.values), own.sum);
    } else if (place < 4u * TILE) {
      octet_facts[place] = vec2f();
    }
  }
  workgroupBarrier();
  for (var at = 0u; at < OCTETS; at++) {
    let place = at * WORKGROUP + lane;
    if (place < 4u * TILE) {
      let block = place / 4u;
      let upper = max(octet_facts[4u * block].x, octet_facts[4u * block + 1u].x);
      let top = max(upper, max(octet_facts[4u * block + 2u].x, octet_facts[4u * block + 3u].x));
      cut(block, place % 4u, octets[at], TOP / max(top, 1e-30));
      if (place % 4u == 0u) {
        let sum = (octet_facts[place].y + octet_facts[place + 1u].y)
          + (octet_facts[place + 2u].y + octet_facts[place + 3u].y);
        x_tile[block].scale = BYTE_UNIT * scale_of(top, sum);
        x_tile[block].sums = vec2f(sum, 0.0);
        if (HALVES == 2u) {
          x_tile[block].sums = vec2f(
            octet_facts[place].y + octet_facts[place + 1u].y,
            octet_facts[place + 2u].y + octet_facts[place + 3u].y,
          );
        }
      }
    }
  }
  workgroupBarrier();
  return squares;
}

// Of a half in which one scale holds; the scale of x is still to come.
fn half_dot(held: WeightBlock, columns: Columns, half: u32) -> f32 {
  var high = 0;
  var low = 0;
  var fine = 0;
  for (var of_half = 0u; of_half < HALF_OCTETS; of_half++) {
    let at = half * HALF_OCTETS + of_half;
    let bytes = weight_bytes(held, at);
    let limbs = columns.limbs[at];
    high += dot4I8Packed(bytes.x, limbs.x) + dot4I8Packed(bytes.y, limbs.y);
    low += dot4I8Packed(bytes.x, limbs.z) + dot4I8Packed(bytes.y, limbs.w);
    fine += dot4I8Packed(bytes.x, columns.fine[at].x) + dot4I8Packed(bytes.y, columns.fine[at].y);
  }
  return f32(256 * high + low) + f32(fine) * (1.0 / FINE);
}

fn block_dot(held: WeightBlock, columns: Columns) -> f32 {
  let first = half_affine(held, 0u);
  var sum = first.x * half_dot(held, columns, 0u);
  var added = first.y * columns.sums.x;
  if (HALVES == 2u) {
    let second = half_affine(held, 1u);
    sum += second.x * half_dot(held, columns, 1u);
    added += second.y * columns.sums.y;
  }
  sum *= columns.scale;
  if (ADDS) {
    sum += added;
  }
  return sum;
}

// What each invocation has left: a few add up a share of it, each of its own.
fn add_up_squares(lane: u32) {
  if (lane >= ADDERS) {
    return;
  }
  var squares = 0.0;
  for (var at = lane; at < WORKGROUP; at += ADDERS) {
    squares += octet_facts[at].x;
  }
  octet_facts[lane].x = squares;
}

fn added_squares() -> f32 {
  var squares = 0.0;
  for (var at = 0u; at < ADDERS; at++) {
    squares += octet_facts[at].x;
  }
  return squares;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let first_pair = (group.y * groups.x + group.x) * GROUP_PAIRS;
  let rows = pair_rows(first_pair + lane / BESIDE % GROUP_PAIRS);
  let member = lane % BESIDE + lane / (BESIDE * GROUP_PAIRS) * BESIDE;  // of a team
  let blocks = params.octets / 4u;
  var sums = vec2f();
  var squares = 0.0;
  var next = fetch(rows, member);
  if (SUMMED) {
    octet_facts[lane].x = row_squares(lane, WORKGROUP);
    workgroupBarrier();
    add_up_squares(lane);
    workgroupBarrier();
    begin_row(added_squares(), first_pair == 0u);
    workgroupBarrier();
  }
  for (var tile = 0u; tile < blocks; tile += TILE) {
    squares += lay_out(tile, lane);
    let count = min(TILE, blocks - tile);
    for (var place = member; place < count; place += STEPS * TEAM) {
      let now = next;
      next = fetch(rows, tile + place + STEPS * TEAM);
      for (var step = 0u; step < STEPS; step++) {
        let columns = x_tile[place + step * TEAM];
        sums.x += block_dot(now.upper[step], columns);
        sums.y += block_dot(now.lower[step], columns);
      }
    }
    workgroupBarrier();
  }
  partials[lane] = sums;
  octet_facts[lane].x = squares;
  workgroupBarrier();
  if (NORMED) {
    add_up_squares(lane);
  }
  workgroupBarrier();
  if (lane >= GROUP_PAIRS || first_pair + lane >= params.pairs) {
    return;
  }
  sums = vec2f();
  for (var slice = 0u; slice < TEAM / BESIDE; slice++) {
    for (var at = 0u; at < BESIDE; at++) {
      sums += partials[(slice * GROUP_PAIRS + lane) * BESIDE + at];
    }
  }
  store_pair(0u, first_pair + lane, norm_scale(added_squares()) * sums);
}
