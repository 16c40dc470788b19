// k and v stored in blocks of 32 values, read four at a time.
// needs: cached = attention/fragments/cached_*

const QUADS_OF_BLOCK = 8u;

@group(0) @binding(0) var<storage, read> k: array<u32>;
@group(0) @binding(1) var<storage, read> v: array<u32>;

fn key_quad(at: u32) -> vec4f {
  let block = at / QUADS_OF_BLOCK * CACHED_WORDS;
  let quad = at % QUADS_OF_BLOCK;
  return cached_quad(k[block], k[block + cached_word(quad)], k[block + cached_rest(quad)], quad);
}

fn value_quad(at: u32) -> vec4f {
  let block = at / QUADS_OF_BLOCK * CACHED_WORDS;
  let quad = at % QUADS_OF_BLOCK;
  return cached_quad(v[block], v[block + cached_word(quad)], v[block + cached_rest(quad)], quad);
}
