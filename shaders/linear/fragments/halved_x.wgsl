// Columns of x as halves, of which the largest of a block is scaled to TOP: products with signed bytes, 16
// added to each other, cannot overflow.
// needs: nothing

const TOP = 16.0;

// Eight columns in the order of the weight's words, two halves in a word: of four columns the first and the
// third, then the others, as half_pairs.wgsl has them.
fn halved_octet(octet: mat2x4f) -> vec4u {
  return vec4u(
    pack2x16float(octet[0].xz),
    pack2x16float(octet[0].yw),
    pack2x16float(octet[1].xz),
    pack2x16float(octet[1].yw),
  );
}
