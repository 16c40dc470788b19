// Nothing but what rows see takes part in their softmax.
// needs: nothing

fn with_sinks(sums: vec4f, tops: vec4f, heads: vec4u) -> vec4f {
  return sums;
}
