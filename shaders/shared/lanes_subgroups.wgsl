// Reductions over a workgroup by subgroup operations: first within each subgroup, whose size may differ
// between runs, then over the subgroups. With every lanes_* file, all invocations take part and all get the
// result; the caller puts a barrier between two reductions of the same kind over the whole workgroup.
// needs: shared/subgroups, @WORKGROUP

struct Invocation {
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_invocation_id) subgroup_lane: u32,
  @builtin(subgroup_size) subgroup_size: u32,
}

// One place for each subgroup; their number is only known at run time, and WORKGROUP is its bound.
var<workgroup> subgroup_values: array<f32, WORKGROUP>;
var<workgroup> subgroup_vectors: array<vec4f, WORKGROUP>;

fn sum_of_four(own: Invocation, value: f32) -> f32 {
  let pair = value + subgroupShuffleXor(value, 1u);
  return pair + subgroupShuffleXor(pair, 2u);
}

fn sums_of_four(own: Invocation, values: vec4f) -> vec4f {
  let pairs = values + subgroupShuffleXor(values, 1u);
  return pairs + subgroupShuffleXor(pairs, 2u);
}

fn put_down_value(own: Invocation, of_subgroup: f32) {
  if (own.subgroup_lane == 0u) {
    subgroup_values[own.lane / own.subgroup_size] = of_subgroup;
  }
  workgroupBarrier();
}

fn put_down_vector(own: Invocation, of_subgroup: vec4f) {
  if (own.subgroup_lane == 0u) {
    subgroup_vectors[own.lane / own.subgroup_size] = of_subgroup;
  }
  workgroupBarrier();
}

fn sum_of_all(own: Invocation, value: f32) -> f32 {
  put_down_value(own, subgroupAdd(value));
  var sum = 0.0;
  for (var at = 0u; at * own.subgroup_size < WORKGROUP; at++) {
    sum += subgroup_values[at];
  }
  return sum;
}

fn sums_of_all(own: Invocation, values: vec4f) -> vec4f {
  put_down_vector(own, subgroupAdd(values));
  var sums = vec4f();
  for (var at = 0u; at * own.subgroup_size < WORKGROUP; at++) {
    sums += subgroup_vectors[at];
  }
  return sums;
}

fn largest_of_all(own: Invocation, value: f32) -> f32 {
  put_down_value(own, subgroupMax(value));
  var largest = subgroup_values[0];
  for (var at = 1u; at * own.subgroup_size < WORKGROUP; at++) {
    largest = max(largest, subgroup_values[at]);
  }
  return largest;
}

fn each_largest_of_all(own: Invocation, values: vec4f) -> vec4f {
  put_down_vector(own, subgroupMax(values));
  var largest = subgroup_vectors[0];
  for (var at = 1u; at * own.subgroup_size < WORKGROUP; at++) {
    largest = max(largest, subgroup_vectors[at]);
  }
  return largest;
}
