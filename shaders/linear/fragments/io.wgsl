// The parameters and scales of every product x weightᵀ. x: [tokens, K], K a multiple of 4; weight:
// [rows, K], read by a fragment of shared/weights. The epilogue declares Params, whose first member `shape`
// is of the type LinearParams.
// needs: nothing

@group(0) @binding(0) var<uniform> params: Params;

// Whether K is a multiple of the columns that a kernel takes at a time, so that it has no tail.
override WHOLE_K: bool = false;

// Tokens past the end repeat the last one, and are not stored.
fn live_token(token: u32) -> u32 {
  return min(token, params.shape.tokens - 1u);
}

const MAX_PARTS = 3u;  // matrices that are joined into one

// For q4gsw: the index of the scale of a row's first group, and the stride to that of the next group. Each
// joined matrix has its scales [groups, padded rows] behind those of the one before.
fn row_scales(row: u32) -> vec2u {
  let part = u32(row >= params.shape.part_ends.x) + u32(row >= params.shape.part_ends.y);
  return vec2u(params.shape.part_offsets[part] + row, params.shape.part_strides[part]);
}
