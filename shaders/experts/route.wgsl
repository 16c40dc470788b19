// Routing: the experts that a token uses, and their shares of the sum, by the softmax of their logits or by
// the sigmoid of each logit. A bias may be added to the sigmoids for the choice of experts only, not for
// their shares. A workgroup takes one token; an expert's rank is the number of experts ahead of it.
// needs: nothing

struct Params {
  tokens: u32,
  experts: u32,
  used: u32,
  renormalised: u32,  // whether the shares of the used experts add up to 1
  by_sigmoid: u32,
  has_choice: u32,  // 0: any buffer is bound, unread
  scale: f32,  // of the shares
}

const WORKGROUP = 64u;
const MAX_EXPERTS = 512u;
const MAX_USED = 64u;
const EPSILON = 1e-6;  // added to a sum of sigmoids, which may be close to zero

@group(0) @binding(0) var<storage, read> logits: array<f32>;  // [tokens, experts]
@group(0) @binding(1) var<storage, read> choice: array<f32>;  // [experts]
@group(0) @binding(2) var<storage, read_write> chosen: array<u32>;  // [tokens, used]
@group(0) @binding(3) var<storage, read_write> shares: array<f32>;  // [tokens, used]
@group(0) @binding(4) var<uniform> params: Params;

var<workgroup> own: array<f32, MAX_EXPERTS>;
var<workgroup> picked: array<u32, MAX_USED>;

fn is_ahead(other: u32, expert: u32) -> bool {
  return own[other] > own[expert] || (own[other] == own[expert] && other < expert);
}

fn sigmoid(logit: f32) -> f32 {
  return 1.0 / (1.0 + exp(-logit));
}

// The score by which a token's experts are ranked.
fn score(token: u32, expert: u32) -> f32 {
  let logit = logits[token * params.experts + expert];
  if (params.by_sigmoid == 0u) {
    return logit;
  }
  return sigmoid(logit) + select(0.0, choice[expert], params.has_choice != 0u);
}

// An expert's share is proportional to this.
fn strength(token: u32, expert: u32, top: f32) -> f32 {
  if (params.by_sigmoid != 0u) {
    return sigmoid(logits[token * params.experts + expert]);
  }
  return exp(own[expert] - top);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  // A folded grid may have surplus workgroups, which repeat the last one's work.
  let token = min(group.y * groups.x + group.x, params.tokens - 1u);
  for (var expert = lane; expert < params.experts; expert += WORKGROUP) {
    own[expert] = score(token, expert);
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
      total += strength(token, picked[place], top);
    }
    total += select(0.0, EPSILON, params.by_sigmoid != 0u);
  } else if (params.by_sigmoid != 0u) {
    total = 1.0;
  } else {
    for (var expert = 0u; expert < params.experts; expert++) {
      total += strength(token, expert, top);
    }
  }
  let at = token * params.used + lane;
  chosen[at] = picked[lane];
  shares[at] = params.scale * strength(token, picked[lane], top) / total;
}
