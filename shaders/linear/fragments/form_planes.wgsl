// Columns as integers, split into two int8 planes.
// needs: linear/fragments/int8_planes, linear/fragments/plane_layout, @planes

fn rounded(columns: vec4f) -> vec4f {
  return round(columns);
}

fn store_octets(a: mat2x4f, b: mat2x4f, c: mat2x4f, d: mat2x4f, first: u32, step: u32) {
  planes[first] = two_planes(a);
  planes[first + step] = two_planes(b);
  planes[first + 2u * step] = two_planes(c);
  planes[first + 3u * step] = two_planes(d);
}
