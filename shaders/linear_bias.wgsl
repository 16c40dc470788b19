// The bias of a quantised linear. Without one any buffer stands in its place, unread.

@group(0) @binding(5) var<storage, read> bias: array<f32>;
