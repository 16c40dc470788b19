// Columns as integers, split into two int8 planes.
// needs: linear/fragments/int8_planes

fn rounded(columns: vec4f) -> vec4f {
  return round(columns);
}

fn stored_octet(octet: mat2x4f) -> vec4u {
  return two_planes(octet);
}
