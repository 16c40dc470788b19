// Eight columns reordered for two words, of which one has the even columns and the other the odd ones.
// needs: nothing

fn even_first(octet: mat2x4f) -> mat2x4f {
  return mat2x4f(vec4f(octet[0].xz, octet[1].xz), vec4f(octet[0].yw, octet[1].yw));
}
