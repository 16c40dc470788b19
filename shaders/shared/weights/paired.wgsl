// Eight columns in the order of two words that have the even ones and the odd ones.
// needs: nothing

fn even_first(octet: mat2x4f) -> mat2x4f {
  return mat2x4f(vec4f(octet[0].xz, octet[1].xz), vec4f(octet[0].yw, octet[1].yw));
}
