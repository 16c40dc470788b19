// An octet of a block in floats, in the order of its columns, before BYTE_UNIT and the scale.
// needs: shared/weights/packed_values, shared/weights/order, blocks = shared/weights/blocks_*

fn float_octet(held: WeightBlock, octet: u32) -> mat2x4f {
  let bytes = weight_bytes(held, octet);
  return ungrouped(mat2x4f(signed_bytes(bytes.x), signed_bytes(bytes.y)));
}
