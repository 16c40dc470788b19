// A block of x loaded by four invocations, a quarter each: otherwise a software adapter spends most of its
// time on loads of x.
// needs: shared/subgroups, linear/fragments/quads, linear/fragments/block, linear/fragments/norm

const LOADERS = QUAD_LANES;  // invocations that share the loads of a token

fn from_all_lanes(value: f32) -> vec4f {
  return vec4f(
    quadBroadcast(value, 0u),
    quadBroadcast(value, 1u),
    quadBroadcast(value, 2u),
    quadBroadcast(value, 3u),
  );
}

fn x_block(block: u32, lane: u32) -> Block {
  let own = normed_octet(4u * block + (lane & (QUAD_LANES - 1u)));
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
