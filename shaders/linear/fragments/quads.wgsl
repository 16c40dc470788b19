// Broadcasts from one of four neighbouring invocations to all of them.
// needs: shared/subgroups

const QUAD_LANES = 4u;

fn from_lane_0(octet: mat2x4f) -> mat2x4f {
  return mat2x4f(quadBroadcast(octet[0], 0u), quadBroadcast(octet[1], 0u));
}

fn from_lane_1(octet: mat2x4f) -> mat2x4f {
  return mat2x4f(quadBroadcast(octet[0], 1u), quadBroadcast(octet[1], 1u));
}

fn from_lane_2(octet: mat2x4f) -> mat2x4f {
  return mat2x4f(quadBroadcast(octet[0], 2u), quadBroadcast(octet[1], 2u));
}

fn from_lane_3(octet: mat2x4f) -> mat2x4f {
  return mat2x4f(quadBroadcast(octet[0], 3u), quadBroadcast(octet[1], 3u));
}
