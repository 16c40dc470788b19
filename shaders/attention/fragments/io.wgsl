// The parameters of the attention kernels, and their tiles, which attend.wgsl explains.
// needs: nothing

struct Params {
  mask_strides: vec4u,  // batch, head, query, key; see mask_tensor
  q_batch: u32,  // strides of q and of k and v, in elements of their bindings
  q_token: u32,
  q_head: u32,
  kv_batch: u32,
  kv_token: u32,
  kv_head: u32,
  kv_heads: u32,
  group: u32,  // query heads of a key and value head
  heads: u32,  // batches * kv_heads
  rows: u32,  // tokens * group
  tiles: u32,  // of one head
  splits: u32,
  kv_tokens: u32,  // tokens of this call's k and v
  width: u32,
  scale: f32,
  softcap: f32,  // see score_capped
  window: u32,  // see mask_window and mask_tensor
  kv_rows: u32,  // rows of the caches
  mask_kind: u32,
  together: u32,  // so many first tokens see each other; see mask_causal
}

struct Tile {
  batch: u32,
  heads: vec4u,  // of the query rows
  tokens: vec4u,
}

@group(0) @binding(0) var<uniform> params: Params;
