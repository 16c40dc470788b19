// A block of a row as bytes, for products with int8 planes of x.
// needs: blocks = shared/weights/blocks_*

struct Row {
  first: vec4u,  // bytes of the first half of a block
  second: vec4u,
  affine: vec4f,  // (scale, minimum) of both halves
}

fn first_bytes(held: WeightBlock) -> vec4u {
  return vec4u(weight_bytes(held, 0u), weight_bytes(held, 1u));
}

fn second_bytes(held: WeightBlock) -> vec4u {
  return vec4u(weight_bytes(held, 2u), weight_bytes(held, 3u));
}

fn affine_of(held: WeightBlock) -> vec4f {
  return vec4f(half_affine(held, 0u), half_affine(held, HALVES - 1u));
}

fn row_of(held: WeightBlock) -> Row {
  return Row(first_bytes(held), second_bytes(held), affine_of(held));
}
