// Each query head has a score that takes its share of the softmax and gives nothing for it.
// needs: nothing

const MAX_SINK_LEAD = 80.0;  // past it all that rows see is nothing beside the sink

@group(0) @binding(7) var<storage, read> sinks: array<f32>;

fn with_sinks(sums: vec4f, tops: vec4f, heads: vec4u) -> vec4f {
  let own = vec4f(sinks[heads.x], sinks[heads.y], sinks[heads.z], sinks[heads.w]);
  return sums + exp(min(own - tops, vec4f(MAX_SINK_LEAD)));
}
