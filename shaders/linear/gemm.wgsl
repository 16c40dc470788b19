// GEMM for software adapters: several tokens, everything in registers. An invocation computes 8 tokens ×
// 4 pairs of rows, eight columns of K at a time, so that eight rows of weights are dequantised once for
// eight tokens. Four neighbours take the same tokens, a tile of 8 tokens × 16 pairs.
// needs: shared/weights/places, weight = shared/weights/octets_*, shared/weights/dequantise, tokens = linear/fragments/tokens_*, epilogue = linear/fragments/epilogue_*, @pair_rows

const WORKGROUP = 16u;
const TILE_TOKENS = 8u;
const TILE_PAIRS = 16u;
const PAIRS = 4u;
const SHARERS = TILE_PAIRS / PAIRS;  // invocations that share a tile

// Eight columns of four rows of the weight: each column of a matrix is one row.
struct Rows {
  low: mat4x4f,
  high: mat4x4f,
}

fn four_rows(rows: array<Row, 4>, columns: EightColumns) -> Rows {
  let a = raised(rows[0], columns);
  let b = raised(rows[1], columns);
  let c = raised(rows[2], columns);
  let d = raised(rows[3], columns);
  return Rows(mat4x4f(a[0], b[0], c[0], d[0]), mat4x4f(a[1], b[1], c[1], d[1]));
}

// Four dot products over eight columns.
fn dots(values: mat2x4f, rows: Rows) -> vec4f {
  return values[0] * rows.low + values[1] * rows.high;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let tile = ((group.y * groups.x + group.x) * WORKGROUP + lane) / SHARERS;
  let tiles_across = (params.pairs + TILE_PAIRS - 1u) / TILE_PAIRS;
  // Tokens and pairs past the end are clamped and not stored, which keeps control flow uniform.
  let token = (tile / tiles_across) * TILE_TOKENS;
  let pair = (tile % tiles_across) * TILE_PAIRS + lane % SHARERS * PAIRS;
  let a = pair_rows(pair);
  let b = pair_rows(pair + 1u);
  let c = pair_rows(pair + 2u);
  let d = pair_rows(pair + 3u);
  let left_rows = array(row_at(a.x), row_at(b.x), row_at(c.x), row_at(d.x));
  let right_rows = array(row_at(a.y), row_at(b.y), row_at(c.y), row_at(d.y));
  // Sums of each token of the tile: l of the pairs' first rows, r of their second ones.
  var l0 = vec4f(); var l1 = vec4f(); var l2 = vec4f(); var l3 = vec4f();
  var l4 = vec4f(); var l5 = vec4f(); var l6 = vec4f(); var l7 = vec4f();
  var r0 = vec4f(); var r1 = vec4f(); var r2 = vec4f(); var r3 = vec4f();
  var r4 = vec4f(); var r5 = vec4f(); var r6 = vec4f(); var r7 = vec4f();
  let octets = params.shape.octets;
  for (var octet = 0u; octet < octets; octet++) {
    let columns = columns_at(octet);
    let left = four_rows(left_rows, columns);
    let right = four_rows(right_rows, columns);
    let tokens = eight_tokens(token, octet, lane);
    l0 += dots(tokens.a, left);
    r0 += dots(tokens.a, right);
    l1 += dots(tokens.b, left);
    r1 += dots(tokens.b, right);
    l2 += dots(tokens.c, left);
    r2 += dots(tokens.c, right);
    l3 += dots(tokens.d, left);
    r3 += dots(tokens.d, right);
    l4 += dots(tokens.e, left);
    r4 += dots(tokens.e, right);
    l5 += dots(tokens.f, left);
    r5 += dots(tokens.f, right);
    l6 += dots(tokens.g, left);
    r6 += dots(tokens.g, right);
    l7 += dots(tokens.h, left);
    r7 += dots(tokens.h, right);
  }
  var firsts = array(l0, l1, l2, l3, l4, l5, l6, l7);
  var seconds = array(r0, r1, r2, r3, r4, r5, r6, r7);
  for (var down = 0u; down < TILE_TOKENS; down++) {
    for (var across = 0u; across < PAIRS; across++) {
      if (token + down < params.shape.tokens && pair + across < params.pairs) {
        let sums = vec2f(firsts[down][across], seconds[down][across]);
        store_pair(token + down, pair + across, UNIT * sums);
      }
    }
  }
}
