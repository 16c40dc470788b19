// Which experts a token goes through: those of the largest logits, with their shares of the softmax.
// A workgroup has a token; an expert's place is how many others are ahead of it.
// needs: nothing

struct Params {
  lines: u32,  // tokens
  experts: u32,
  used: u32,
  renormalised: u32,  // whether the shares of those used add up to 1; else those of all do
}

const WORKGROUP = 64u;
const MOST_EXPERTS = 512u;
const MOST_USED = 64u;

@group(0) @binding(0) var<storage, read> logits: array<f32>;  // [lines, experts]
@group(0) @binding(1) var<storage, read_write> chosen: array<u32>;  // [lines, used]
@group(0) @binding(2) var<storage, read_write> shares: array<f32>;  // [lines, used]
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> own: array<f32, MOST_EXPERTS>;
var<workgroup> picked: array<u32, MOST_USED>;

fn is_ahead(other: u32, expert: u32) -> bool {
  return own[other] > own[expert] || (own[other] == own[expert] && other < expert);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  // A folded grid may have a few workgroups too many: they do the last one's work again.
  let line = min(group.y * groups.x + group.x, params.lines - 1u);
  for (var expert = lane; expert < params.experts; expert += WORKGROUP) {
    own[expert] = logits[line * params.experts + expert];
  }
  workgroupBarrier();
  for (var expert = lane; expert < params.experts; expert += WORKGROUP) {
    var place = 0u;
    for (var other = 0u; other < params.experts; other++) {
      place += u32(is_ahead(other, expert));
    }
    if (place < params.used) {
      picked[place] = expert;
    }
  }
  workgroupBarrier();
  if (lane >= params.used) {
    return;
  }
  let top = own[picked[0]];
  var total = 0.0;
  if (params.renormalised != 0u) {
    for (var place = 0u; place < params.used; place++) {
      total += exp(own[picked[place]] - top);
    }
  } else {
    for (var expert = 0u; expert < params.experts; expert++) {
      total += exp(own[expert] - top);
    }
  }
  let at = line * params.used + lane;
  chosen[at] = picked[lane];
  shares[at] = exp(own[picked[lane]] - top) / total;
}
