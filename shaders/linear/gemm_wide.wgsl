// Several lines of x, for adapters with cheap workgroup memory. A workgroup computes a square of
// SIDE × SIDE outputs, SIDE columns of K at a time: both factors are laid out in workgroup memory
// column by column, four lines or rows in a vector, and an invocation keeps 4 × 4 sums in registers.
// Small squares leave invocations for several teams, which share out the columns and add up in the end.
// needs: linear/fragments/io, linear/fragments/x, weight = shared/weights/octets_*, shared/weights/dequantise, finish = linear/fragments/finish_*, @pair_rows

override WORKGROUP: u32 = 256u;
override SIDE: u32 = 64u;
override QUADS: u32 = SIDE / 4u;  // vectors of four lines or rows in a column of the square
override MEMBERS: u32 = QUADS * QUADS;  // invocations of a team
override TEAMS: u32 = WORKGROUP / MEMBERS;  // at most four

// An invocation carries one block of x from memory to its team's tile, 4 lines × 4 columns, and half
// of them one of the weight as well, 4 rows × 8 columns.
override WEIGHT_BLOCKS: u32 = MEMBERS / 2u;

var<workgroup> x_tiles: array<vec4f, 4u * WORKGROUP>;  // [team][column][quad of lines]
var<workgroup> weight_tiles: array<vec4f, 4u * WORKGROUP>;  // [team][column][quad of rows]

struct Blocks {
  x: mat4x4f,
  low: mat4x4f,  // of the weight
  high: mat4x4f,
}

fn x_quad(line: u32, quad: u32) -> vec4f {
  let value = x[live_line(line) * params.quads + min(quad, params.quads - 1u)];
  return select(vec4f(), value, quad < params.quads);
}

fn fetch(member: u32, first_line: u32, first_pair: u32, first_octet: u32) -> Blocks {
  let line = first_line + 4u * (member % QUADS);
  let quad = 2u * first_octet + member / QUADS;
  var blocks: Blocks;
  blocks.x = transpose(mat4x4f(
    x_quad(line, quad),
    x_quad(line + 1u, quad),
    x_quad(line + 2u, quad),
    x_quad(line + 3u, quad),
  ));
  if (member < WEIGHT_BLOCKS) {
    // Four rows of the weight are two pairs. Columns past the end of K need no zeros: x has them.
    let octet = min(first_octet + member / QUADS, params.octets - 1u);
    let columns = columns_at(octet);
    let pair = first_pair + 2u * (member % QUADS);
    let upper = pair_rows(pair);
    let lower = pair_rows(pair + 1u);
    let a = dequantised(row_at(upper.x), columns);
    let b = dequantised(row_at(upper.y), columns);
    let c = dequantised(row_at(lower.x), columns);
    let d = dequantised(row_at(lower.y), columns);
    blocks.low = transpose(mat4x4f(a[0], b[0], c[0], d[0]));
    blocks.high = transpose(mat4x4f(a[1], b[1], c[1], d[1]));
  }
  return blocks;
}

fn put_down(tile: u32, member: u32, blocks: Blocks) {
  let rows = member % QUADS;
  let place = member / QUADS;
  for (var column = 0u; column < 4u; column++) {
    x_tiles[tile + (4u * place + column) * QUADS + rows] = blocks.x[column];
  }
  if (member < WEIGHT_BLOCKS) {
    for (var column = 0u; column < 4u; column++) {
      weight_tiles[tile + (8u * place + column) * QUADS + rows] = blocks.low[column];
      weight_tiles[tile + (8u * place + 4u + column) * QUADS + rows] = blocks.high[column];
    }
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = group.y * groups.x + group.x;
  let squares_across = (params.pairs + SIDE / 2u - 1u) / (SIDE / 2u);
  let first_pair = (index % squares_across) * (SIDE / 2u);
  let first_line = (index / squares_across) * SIDE;
  let team = lane / MEMBERS;
  let member = lane % MEMBERS;
  let tile = team * SIDE * QUADS;
  let down = member / QUADS;
  let across = member % QUADS;
  let depth = SIDE / 8u;  // octets of a tile
  var s0 = vec4f();
  var s1 = vec4f();
  var s2 = vec4f();
  var s3 = vec4f();
  var blocks = fetch(member, first_line, first_pair, team * depth);
  for (var octet = 0u; octet < params.octets; octet += TEAMS * depth) {
    put_down(tile, member, blocks);
    workgroupBarrier();
    // The next columns are on their way while these are multiplied.
    blocks = fetch(member, first_line, first_pair, octet + (TEAMS + team) * depth);
    for (var column = 0u; column < SIDE; column++) {
      let lines = x_tiles[tile + column * QUADS + down];
      let rows = weight_tiles[tile + column * QUADS + across];
      s0 += lines.x * rows;
      s1 += lines.y * rows;
      s2 += lines.z * rows;
      s3 += lines.w * rows;
    }
    workgroupBarrier();
  }
  // A line of four goes to one team, which adds up what the others have of it.
  x_tiles[lane] = s0;
  x_tiles[WORKGROUP + lane] = s1;
  x_tiles[2u * WORKGROUP + lane] = s2;
  x_tiles[3u * WORKGROUP + lane] = s3;
  workgroupBarrier();
  let pair = first_pair + 2u * across;
  for (var at = team; at < 4u; at += TEAMS) {
    let line = first_line + 4u * down + at;
    var sums = vec4f();
    for (var other = 0u; other < TEAMS; other++) {
      sums += x_tiles[at * WORKGROUP + other * MEMBERS + member];
    }
    if (line < params.count && pair < params.pairs) {
      store_pair(line, pair, sums.xy);
    }
    if (line < params.count && pair + 1u < params.pairs) {
      store_pair(line, pair + 1u, sums.zw);
    }
  }
}
