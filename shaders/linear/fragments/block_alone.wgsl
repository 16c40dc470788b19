// A block of x loaded by every invocation for itself, for devices without subgroups.
// needs: linear/fragments/block, linear/fragments/norm

const LOADERS = 1u;  // invocations that share the loads of a token

fn x_block(block: u32, lane: u32) -> Block {
  let a = normed_octet(4u * block);
  let b = normed_octet(4u * block + 1u);
  let c = normed_octet(4u * block + 2u);
  let d = normed_octet(4u * block + 3u);
  let squares = a.squares + b.squares + c.squares + d.squares;
  let sums = vec4f(a.sum, b.sum, c.sum, d.sum);
  return Block(a.values, b.values, c.values, d.values, sums, squares);
}

fn all_squares(share: f32) -> f32 {
  return share;
}
