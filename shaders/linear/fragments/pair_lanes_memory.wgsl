// Sums over the invocations that share a pair of rows, and over all of a workgroup, for pair_shares.wgsl: through
// workgroup memory, on devices without subgroups.
// needs: linear/fragments/pair_tile, @octet_facts

const ADDERS = 16u;  // invocations that reduce the squares

struct Invocation {
  @builtin(local_invocation_index) lane: u32,
}

var<workgroup> partials: array<vec2f, WORKGROUP>;

fn put_down_sums(own: Invocation, sums: vec2f) {
  partials[own.lane] = sums;
}

// Leaves squares for added_squares; what was put down before is there for all then, too.
fn put_down_squares(own: Invocation, squares: f32) {
  octet_facts[own.lane].x = squares;
  workgroupBarrier();
  if (own.lane < ADDERS) {
    var sum = 0.0;
    for (var at = own.lane; at < WORKGROUP; at += ADDERS) {
      sum += octet_facts[at].x;
    }
    octet_facts[own.lane].x = sum;
  }
  workgroupBarrier();
}

fn added_squares(own: Invocation) -> f32 {
  var squares = 0.0;
  for (var at = 0u; at < ADDERS; at++) {
    squares += octet_facts[at].x;
  }
  return squares;
}

// The sums of a pair of the workgroup's, once they are there for all.
fn added_sums(pair: u32) -> vec2f {
  var sums = vec2f();
  for (var slice = 0u; slice < PAIR_LANES / ADJACENT; slice++) {
    for (var at = 0u; at < ADJACENT; at++) {
      sums += partials[(slice * GROUP_PAIRS + pair) * ADJACENT + at];
    }
  }
  return sums;
}
