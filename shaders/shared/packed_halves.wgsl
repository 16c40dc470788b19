// Eight columns as halves, two in a word; this needs no halves of the device.
// needs: nothing

fn packed_halves(octet: mat2x4f) -> vec4u {
  return vec4u(
    pack2x16float(octet[0].xy),
    pack2x16float(octet[0].zw),
    pack2x16float(octet[1].xy),
    pack2x16float(octet[1].zw),
  );
}

fn unpacked_halves(words: vec4u) -> mat2x4f {
  return mat2x4f(
    vec4f(unpack2x16float(words.x), unpack2x16float(words.y)),
    vec4f(unpack2x16float(words.z), unpack2x16float(words.w)),
  );
}
