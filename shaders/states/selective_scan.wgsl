// The selective scan with a column of H to an invocation: no barrier is needed.
// needs: states/fragments/scan

const WORKGROUP = 64u;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index >= params.count) {
    return;
  }
  let head = index / params.head_dim;
  let rows = min(params.state_dim, MAX_STATE);
  let first = column_start(index);
  var column: array<f32, MAX_STATE>;
  for (var i = 0u; i < rows; i++) {
    column[i] = select(state[first + i * params.head_dim], 0.0, start_pos.x == 0);
  }
  for (var token = 0u; token < params.tokens; token++) {
    let line = token * line_length();
    let b = line + group_start(head);
    let c = b + params.group_count * params.state_dim;
    let step = step_of(token, head);
    let kept = exp(step * rates[head]);
    let value = x[line + index];
    var sum = 0.0;
    for (var i = 0u; i < rows; i++) {
      let now = kept * column[i] + x[b + i] * step * value;
      column[i] = now;
      sum += now * x[c + i];
    }
    let skip = rates[2u * params.heads + head];
    out[token * params.count + index] = (sum + skip * value) * gate_of(token, index);
  }
  for (var i = 0u; i < rows; i++) {
    state[first + i * params.head_dim] = column[i];
  }
}
