// Four invocations load a quarter of the block each: loads of x are what a software adapter does
// most of the time otherwise.

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

fn from_all_lanes(value: f32) -> vec4f {
  return vec4f(
    quadBroadcast(value, 0u),
    quadBroadcast(value, 1u),
    quadBroadcast(value, 2u),
    quadBroadcast(value, 3u),
  );
}

fn x_block(block: u32, lane: u32) -> Block {
  let own = normed_octet(4u * block + lane % 4u);
  return Block(
    from_lane_0(own.values),
    from_lane_1(own.values),
    from_lane_2(own.values),
    from_lane_3(own.values),
    from_all_lanes(own.sum),
    own.squares,
  );
}

fn all_squares(share: f32) -> f32 {
  return dot(from_all_lanes(share), vec4f(1.0));
}
