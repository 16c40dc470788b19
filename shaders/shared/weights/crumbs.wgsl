// 2-bit values ("crumbs") of 32 columns in two words: bits 2v of byte k of a word are those of column 4v + k.
// needs: nothing

// Moves the crumbs of an octet to the two highest bits of each byte of its words.
fn top_crumbs(crumbs: vec2u, octet: u32) -> vec2u {
  let word = select(crumbs.y, crumbs.x, octet < 2u);
  let shift = 4u * (octet % 2u);
  return (vec2u(word >> shift, word >> (shift + 2u)) << vec2u(6u)) & vec2u(0xc0c0c0c0u);
}

// The crumbs of one of the two blocks that share a vector.
fn crumbs_of(pair: vec4u, block: u32) -> vec2u {
  return select(pair.zw, pair.xy, block % 2u == 0u);
}
