// Tokens of x in blocks as gemm_int8.wgsl, gemm_f16.wgsl or gemv_few_int8.wgsl multiplies them, normalised first
// where there is a norm. The 32 columns of a block share a scale; the form says what a column becomes: signed
// bytes of an integer, or a half. A workgroup takes a few tokens, or a share of their blocks; an invocation takes
// every so many of one of them.
// x: [tokens, K]; planes: [K / 32, VECTORS, tokens], four octets of a block, then its scale and sums.
// needs: linear/fragments/scale_of_block, shared/octets, shared/weights/paired, form = linear/fragments/form_*, @TOP

struct Params {
  tokens: u32,  // live rows of x
  quads: u32,  // K / 4
  eps: f32,  // of the norm, where there is one
}

const WORKGROUP = 128u;
const TOKENS = 4u;
const TEAM = WORKGROUP / TOKENS;
override SHARES: u32 = 1u;  // workgroups that share the blocks of the same tokens
override NORMED: bool = false;
override PAIRED: bool = false;  // as in the weight's blocks_*

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> norm: array<vec4f>;  // [K]; any buffer if not NORMED
@group(0) @binding(3) var<storage, read_write> planes: array<vec4u>;

var<workgroup> team_squares: array<f32, WORKGROUP>;

// The factor by which the norm multiplies a token.
fn norm_scale(token: u32, lane: u32) -> f32 {
  let first = token * params.quads;
  var squares = 0.0;
  for (var quad = lane / TOKENS; quad < params.quads; quad += TEAM) {
    squares += dot(x[first + quad], x[first + quad]);
  }
  team_squares[lane] = squares;
  workgroupBarrier();
  squares = 0.0;
  for (var member = 0u; member < TEAM; member++) {
    squares += team_squares[member * TOKENS + lane % TOKENS];
  }
  return inverseSqrt(squares / f32(4u * params.quads) + params.eps);
}

fn columns_of(token: u32, octet: u32, scale: f32) -> mat2x4f {
  let first = token * params.quads + 2u * octet;
  if (!NORMED) {
    return mat2x4f(x[first], x[first + 1u]);
  }
  return scale * mat2x4f(x[first] * norm[2u * octet], x[first + 1u] * norm[2u * octet + 1u]);
}

// Rounds eight columns, in the order of the weight's words.
fn rounded_in_order(octet: mat2x4f, by: f32) -> mat2x4f {
  let columns = mat2x4f(rounded(by * octet[0]), rounded(by * octet[1]));
  if (PAIRED) {
    return even_first(columns);
  }
  return columns;
}

fn split_block(token: u32, block: u32, scale: f32) {
  var a = columns_of(token, 4u * block, scale);
  var b = columns_of(token, 4u * block + 1u, scale);
  var c = columns_of(token, 4u * block + 2u, scale);
  var d = columns_of(token, 4u * block + 3u, scale);
  let top = max(max(top_of(a), top_of(b)), max(top_of(c), top_of(d)));
  let by = TOP / max(top, 1e-30);
  a = rounded_in_order(a, by);
  b = rounded_in_order(b, by);
  c = rounded_in_order(c, by);
  d = rounded_in_order(d, by);
  // Sum the rounded columns, so that a weight's minimum meets the same x as its bytes do.
  let sums = vec2f(octet_sum(a) + octet_sum(b), octet_sum(c) + octet_sum(d)) * (top / TOP);
  store_block(block, token, a, b, c, d, vec4f(scale_of(top, sums.x + sums.y), sums, 0.0));
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  // Invocations past the last token repeat it.
  let index = group.y * groups.x + group.x;
  let token = min(index / SHARES * TOKENS + lane % TOKENS, params.tokens - 1u);
  var scale = 1.0;
  if (NORMED) {
    scale = norm_scale(token, lane);
  }
  let first = index % SHARES * TEAM + lane / TOKENS;
  for (var block = first; block < params.quads / 8u; block += SHARES * TEAM) {
    split_block(token, block, scale);
  }
}
