// What every linear kernel has: x weightᵀ. x: [count, K], K a multiple of 4; weight: [rows, K], in a
// fragment of shared/weights. The fragment that knows what becomes of the sums has the Params.
// needs: nothing

@group(0) @binding(0) var<uniform> params: Params;

// Tokens are a multiple of the columns that a kernel takes at a time: it never asks for more.
override WHOLE_K: bool = false;

// Tokens past the end are the last one again, and are not stored.
fn live_token(token: u32) -> u32 {
  return min(token, params.shape.tokens - 1u);
}

const MAX_PARTS = 3u;  // matrices that row_scales tells apart

// For q4gsw: where the scale of a row's first group lies, and how far it is to that of the next. Each
// matrix that was joined has its scales [groups, padded rows] behind those of the one before.
fn row_scales(row: u32) -> vec2u {
  let part = u32(row >= params.shape.part_ends.x) + u32(row >= params.shape.part_ends.y);
  return vec2u(params.shape.part_offsets[part] + row, params.shape.part_strides[part]);
}
