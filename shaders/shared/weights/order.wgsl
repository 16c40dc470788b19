// Octets of x in the order in which weight_bytes of a file blocks_* has those of the weight: with PAIRED the
// first word has the even columns and the second the odd ones, otherwise the first has the first four.
// needs: shared/weights/paired, blocks = shared/weights/blocks_*

fn grouped(octet: mat2x4f) -> mat2x4f {
  if (!PAIRED) {
    return octet;
  }
  return even_first(octet);
}

// The inverse of grouped.
fn ungrouped(words: mat2x4f) -> mat2x4f {
  if (!PAIRED) {
    return words;
  }
  return mat2x4f(
    vec4f(words[0].x, words[1].x, words[0].y, words[1].y),
    vec4f(words[0].z, words[1].z, words[0].w, words[1].w),
  );
}
