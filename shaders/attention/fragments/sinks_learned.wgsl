// Attention sinks: each query head has a score that takes part in the softmax and has no value.
// needs: nothing

const MAX_SINK_LEAD = 80.0;  // beyond it the positions' share is zero in f32

@group(0) @binding(7) var<storage, read> sinks: array<f32>;

fn with_sinks(sums: vec4f, tops: vec4f, heads: vec4u) -> vec4f {
  let own = vec4f(sinks[heads.x], sinks[heads.y], sinks[heads.z], sinks[heads.w]);
  return sums + exp(min(own - tops, vec4f(MAX_SINK_LEAD)));
}
