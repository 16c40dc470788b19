// Eight tokens loaded by four invocations, two each.
// needs: linear/fragments/quads, linear/fragments/tokens

fn eight_tokens(token: u32, octet: u32, lane: u32) -> Tokens {
  let own = token + 2u * (lane & (QUAD_LANES - 1u));
  let even = live_octet(own, octet);
  let odd = live_octet(own + 1u, octet);
  return Tokens(
    from_lane_0(even),
    from_lane_0(odd),
    from_lane_1(even),
    from_lane_1(odd),
    from_lane_2(even),
    from_lane_2(odd),
    from_lane_3(even),
    from_lane_3(odd),
  );
}
