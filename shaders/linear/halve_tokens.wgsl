// Tokens of x as halves for gemm_matrices.wgsl, normalised first where there is a norm. A token's columns share a
// power of two, by which the largest of them comes close to TOP: halves then hold all that are not a million
// times smaller to eleven bits, and two parts, the second of which is what the first one's rounding left, to twice
// as many. A workgroup takes a few tokens.
// x: [tokens, K]; halved: [tokens, octets of all parts of a block, block by block, then the scale]
// needs: shared/packed_halves

struct Params {
  tokens: u32,  // live rows of x
  quads: u32,  // K / 4
  eps: f32,  // of the norm, where there is one
}

const WORKGROUP = 128u;
const TOKENS = 4u;
const TEAM = WORKGROUP / TOKENS;
const TOP = 1024.0;
const OCTETS = 4u;  // of a block
override NORMED: bool = false;
override PARTS: u32 = 1u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> norm: array<vec4f>;  // [K]; any buffer if not NORMED
@group(0) @binding(3) var<storage, read_write> halved: array<vec4u>;

var<workgroup> shares: array<vec2f, WORKGROUP>;  // (sum of squares, largest magnitude)

// Columns before the factor that a norm has for all of them; zeros past the end of K.
fn columns_of(token: u32, quad: u32) -> vec4f {
  let own = min(quad, params.quads - 1u);
  var values = x[token * params.quads + own];
  if (NORMED) {
    values *= norm[own];
  }
  return select(vec4f(), values, quad < params.quads);
}

// The sum of squares of a token, and the largest of its columns before the norm's factor.
fn survey(token: u32, lane: u32) -> vec2f {
  var share = vec2f();
  for (var quad = lane / TOKENS; quad < params.quads; quad += TEAM) {
    let values = x[token * params.quads + quad];
    let sizes = abs(columns_of(token, quad));
    share.x += dot(values, values);
    share.y = max(share.y, max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
  }
  shares[lane] = share;
  workgroupBarrier();
  share = vec2f();
  for (var member = 0u; member < TEAM; member++) {
    let other = shares[member * TOKENS + lane % TOKENS];
    share = vec2f(share.x + other.x, max(share.y, other.y));
  }
  return share;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  // Invocations past the last token repeat it.
  let token = min((group.y * groups.x + group.x) * TOKENS + lane % TOKENS, params.tokens - 1u);
  let surveyed = survey(token, lane);
  var factor = 1.0;
  if (NORMED) {
    factor = inverseSqrt(surveyed.x / f32(4u * params.quads) + params.eps);
  }
  let power = bitcast<f32>(bitcast<u32>(max(factor * surveyed.y, 1e-30)) & 0x7f800000u);
  let by = factor * (TOP / power);
  let octets = (params.quads + 7u) / 8u * OCTETS;
  let first = token * (PARTS * octets + 1u);
  for (var octet = lane / TOKENS; octet < octets; octet += TEAM) {
    let place = first + octet / OCTETS * OCTETS * PARTS + octet % OCTETS;
    let values = mat2x4f(by * columns_of(token, 2u * octet), by * columns_of(token, 2u * octet + 1u));
    let rounded = packed_halves(values);
    halved[place] = rounded;
    if (PARTS > 1u) {
      halved[place + OCTETS] = packed_halves(values - unpacked_halves(rounded));
    }
  }
  if (lane < TOKENS) {
    // What is not finite cannot be scaled: the sum of squares passes it on.
    let is_finite = (bitcast<u32>(surveyed.x) & 0x7fffffffu) < 0x7f800000u;
    halved[first + PARTS * octets] = vec4u(bitcast<u32>(select(surveyed.x, power / TOP, is_finite)), 0u, 0u, 0u);
  }
}
