// Four invocations load two lines each.
// needs: linear/fragments/quads, linear/fragments/lines

fn eight_lines(line: u32, octet: u32, lane: u32) -> Lines {
  let own = line + 2u * (lane & (QUAD_LANES - 1u));
  let even = line_octet(own, octet);
  let odd = line_octet(own + 1u, octet);
  return Lines(
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
