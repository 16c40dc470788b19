// Columns as integers, split into two int8 planes, and what these leave in a third.
// needs: linear/fragments/int8_planes, linear/fragments/plane_layout_three, @planes

fn rounded(columns: vec4f) -> vec4f {
  return columns;
}

fn fine_planes(even: mat2x4f, odd: mat2x4f) -> vec4u {
  return vec4u(fine_plane(even[0]), fine_plane(even[1]), fine_plane(odd[0]), fine_plane(odd[1]));
}

fn store_octets(a: mat2x4f, b: mat2x4f, c: mat2x4f, d: mat2x4f, first: u32, step: u32) {
  planes[first] = two_planes(a);
  planes[first + step] = two_planes(b);
  planes[first + 2u * step] = two_planes(c);
  planes[first + 3u * step] = two_planes(d);
  planes[first + FINE_FIRST * step] = fine_planes(a, b);
  planes[first + FINE_SECOND * step] = fine_planes(c, d);
}
