// Columns as halves; this needs none of the device.
// needs: linear/fragments/halved_x

fn rounded(columns: vec4f) -> vec4f {
  return vec4f(
    unpack2x16float(pack2x16float(columns.xy)),
    unpack2x16float(pack2x16float(columns.zw)),
  );
}

fn stored_octet(octet: mat2x4f) -> vec4u {
  return halved_octet(octet);
}
