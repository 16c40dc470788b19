// Columns as halves; this needs none of the device.
// needs: linear/fragments/halved_x, linear/fragments/plane_layout, @planes

fn rounded(columns: vec4f) -> vec4f {
  return vec4f(
    unpack2x16float(pack2x16float(columns.xy)),
    unpack2x16float(pack2x16float(columns.zw)),
  );
}

fn store_block(block: u32, token: u32, a: mat2x4f, b: mat2x4f, c: mat2x4f, d: mat2x4f, facts: vec4f) {
  let step = params.tokens;
  let first = block * VECTORS * step + token;
  planes[first] = halved_octet(a);
  planes[first + step] = halved_octet(b);
  planes[first + 2u * step] = halved_octet(c);
  planes[first + 3u * step] = halved_octet(d);
  planes[first + FACTS * step] = bitcast<vec4u>(facts);
}
