// What every linear kernel reads: x weightᵀ. x: [count, K], K a multiple of 4; weight: [rows, K], in
// a fragment of shared/weights. The fragment that knows what becomes of the sums has the Params.
// needs: nothing

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;

// Lines are a multiple of the columns that a kernel takes at a time: it never asks for more.
override WHOLE_LINES: bool = false;

// Eight columns of x, zeros past the end of the line.
fn x_octet(line: u32, octet: u32) -> mat2x4f {
  let start = line * params.quads;
  if (WHOLE_LINES) {
    return mat2x4f(x[start + 2u * octet], x[start + 2u * octet + 1u]);
  }
  let low = x[start + min(2u * octet, params.quads - 1u)];
  let high = x[start + min(2u * octet + 1u, params.quads - 1u)];
  return mat2x4f(
    select(vec4f(), low, 2u * octet < params.quads),
    select(vec4f(), high, 2u * octet + 1u < params.quads),
  );
}

const MOST_PARTS = 3u;  // matrices that scale_place tells apart

// For q4gsw: where the scale of a group lies. Each matrix that was joined has its scales
// [groups, padded rows] behind those of the one before.
fn scale_place(row: u32, group: u32) -> u32 {
  let part = u32(row >= params.part_ends.x) + u32(row >= params.part_ends.y);
  return params.part_offsets[part] + group * params.part_strides[part] + row;
}
