// Columns as integers, split into two int8 planes.
// needs: linear/fragments/int8_planes, linear/fragments/plane_layout, @planes

fn rounded(columns: vec4f) -> vec4f {
  return round(columns);
}

fn store_block(block: u32, token: u32, a: mat2x4f, b: mat2x4f, c: mat2x4f, d: mat2x4f, facts: vec4f) {
  let step = params.tokens;
  let first = block * VECTORS * step + token;
  planes[first] = two_planes(a);
  planes[first + step] = two_planes(b);
  planes[first + 2u * step] = two_planes(c);
  planes[first + 3u * step] = two_planes(d);
  planes[first + FACTS * step] = bitcast<vec4u>(facts);
}
