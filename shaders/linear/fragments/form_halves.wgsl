// Columns as halves; this needs none of the device.
// needs: linear/fragments/halved_x, linear/fragments/plane_layout, @planes

fn rounded(columns: vec4f) -> vec4f {
  return vec4f(
    unpack2x16float(pack2x16float(columns.xy)),
    unpack2x16float(pack2x16float(columns.zw)),
  );
}

fn store_octets(a: mat2x4f, b: mat2x4f, c: mat2x4f, d: mat2x4f, first: u32, step: u32) {
  planes[first] = halved_octet(a);
  planes[first + step] = halved_octet(b);
  planes[first + 2u * step] = halved_octet(c);
  planes[first + 3u * step] = halved_octet(d);
}
