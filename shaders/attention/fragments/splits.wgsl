// What a split leaves for the kernel that reduces splits.
// needs: attention/fragments/tiles

// sums: [splits, heads, tiles, quads]; stats: [splits, heads, tiles].
@group(0) @binding(0) var<storage, read_write> sums: array<mat4x4f>;
@group(0) @binding(1) var<storage, read_write> stats: array<Stats>;
