// Reductions over a workgroup as in lanes_subgroups.wgsl, for devices without subgroups: through workgroup
// memory, in two steps. A few invocations each reduce every so many values; then all reduce those results.
// needs: @WORKGROUP

const TAKERS = 16u;  // every workgroup has at least as many invocations

struct Invocation {
  @builtin(local_invocation_index) lane: u32,
}

var<workgroup> lane_values: array<f32, WORKGROUP>;
var<workgroup> lane_vectors: array<vec4f, WORKGROUP>;

fn put_down_value(own: Invocation, value: f32) {
  workgroupBarrier();
  lane_values[own.lane] = value;
  workgroupBarrier();
}

fn put_down_vector(own: Invocation, values: vec4f) {
  workgroupBarrier();
  lane_vectors[own.lane] = values;
  workgroupBarrier();
}

fn sum_of_four(own: Invocation, value: f32) -> f32 {
  put_down_value(own, value);
  let first = own.lane / 4u * 4u;
  return (lane_values[first] + lane_values[first + 1u])
    + (lane_values[first + 2u] + lane_values[first + 3u]);
}

fn sums_of_four(own: Invocation, values: vec4f) -> vec4f {
  put_down_vector(own, values);
  let first = own.lane / 4u * 4u;
  return (lane_vectors[first] + lane_vectors[first + 1u])
    + (lane_vectors[first + 2u] + lane_vectors[first + 3u]);
}

fn sum_of_all(own: Invocation, value: f32) -> f32 {
  put_down_value(own, value);
  if (own.lane < TAKERS) {
    var sum = 0.0;
    for (var at = own.lane; at < WORKGROUP; at += TAKERS) {
      sum += lane_values[at];
    }
    lane_values[own.lane] = sum;
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var at = 0u; at < TAKERS; at++) {
    sum += lane_values[at];
  }
  return sum;
}

fn sums_of_all(own: Invocation, values: vec4f) -> vec4f {
  put_down_vector(own, values);
  if (own.lane < TAKERS) {
    var sums = vec4f();
    for (var at = own.lane; at < WORKGROUP; at += TAKERS) {
      sums += lane_vectors[at];
    }
    lane_vectors[own.lane] = sums;
  }
  workgroupBarrier();
  var sums = vec4f();
  for (var at = 0u; at < TAKERS; at++) {
    sums += lane_vectors[at];
  }
  return sums;
}

fn largest_of_all(own: Invocation, value: f32) -> f32 {
  put_down_value(own, value);
  if (own.lane < TAKERS) {
    var largest = value;
    for (var at = own.lane; at < WORKGROUP; at += TAKERS) {
      largest = max(largest, lane_values[at]);
    }
    lane_values[own.lane] = largest;
  }
  workgroupBarrier();
  var largest = value;
  for (var at = 0u; at < TAKERS; at++) {
    largest = max(largest, lane_values[at]);
  }
  return largest;
}

fn each_largest_of_all(own: Invocation, values: vec4f) -> vec4f {
  put_down_vector(own, values);
  if (own.lane < TAKERS) {
    var largest = values;
    for (var at = own.lane; at < WORKGROUP; at += TAKERS) {
      largest = max(largest, lane_vectors[at]);
    }
    lane_vectors[own.lane] = largest;
  }
  workgroupBarrier();
  var largest = values;
  for (var at = 0u; at < TAKERS; at++) {
    largest = max(largest, lane_vectors[at]);
  }
  return largest;
}
