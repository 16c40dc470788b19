// Sums as in pair_lanes_memory.wgsl, by subgroup operations first: four neighbours add up what they have of a
// pair, which subgroups of any size can, and each subgroup its squares.
// needs: shared/subgroups, linear/fragments/pair_tile

const NEIGHBOURS = 4u;

struct Invocation {
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_invocation_id) subgroup_lane: u32,
  @builtin(subgroup_size) subgroup_size: u32,
}

var<workgroup> partials: array<vec2f, WORKGROUP / NEIGHBOURS>;
var<workgroup> subgroup_squares: array<f32, WORKGROUP / NEIGHBOURS>;  // of each subgroup

fn put_down_sums(own: Invocation, sums: vec2f) {
  let pair = sums + subgroupShuffleXor(sums, 1u);
  let four = pair + subgroupShuffleXor(pair, 2u);
  if (own.lane % NEIGHBOURS == 0u) {
    partials[own.lane / NEIGHBOURS] = four;
  }
}

fn put_down_squares(own: Invocation, squares: f32) {
  let of_subgroup = subgroupAdd(squares);
  if (own.subgroup_lane == 0u) {
    subgroup_squares[own.lane / own.subgroup_size] = of_subgroup;
  }
  workgroupBarrier();
}

fn added_squares(own: Invocation) -> f32 {
  var squares = 0.0;
  for (var at = 0u; at * own.subgroup_size < WORKGROUP; at++) {
    squares += subgroup_squares[at];
  }
  return squares;
}

fn added_sums(pair: u32) -> vec2f {
  let fours = ADJACENT / NEIGHBOURS;
  var sums = vec2f();
  for (var slice = 0u; slice < PAIR_LANES / ADJACENT; slice++) {
    for (var at = 0u; at < fours; at++) {
      sums += partials[(slice * GROUP_PAIRS + pair) * fours + at];
    }
  }
  return sums;
}
