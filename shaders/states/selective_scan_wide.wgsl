// The selective scan for GPUs: four neighbours share a column of H and deal out its rows, so that it stays in
// their registers; they add up once a token.
// Many tokens go in chunks side by side. A first dispatch gives what each chunk would leave in an empty state,
// and how much of an older one it keeps; scan_starts.wgsl makes of these the state that each begins with; the
// last dispatch begins there. Few tokens go through at once.
// chunks: [number, heads, state_dim, head_dim], of which each chunk writes the next one's, and behind them
// [number, heads] of what chunks keep.
// needs: lanes = shared/lanes_*, states/fragments/scan

const WORKGROUP = 64u;
const TEAM = 4u;
const MAX_ROWS = MAX_STATE / TEAM;
const CHUNK = 64u;  // tokens
const AT_ONCE = 0u;
const ENDS = 1u;
const OUTS = 2u;
override PHASE: u32 = AT_ONCE;
override ROWS: u32 = 32u;  // of a column, an invocation's share

@group(0) @binding(0) var<storage, read_write> chunks: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let place = ((group.y * groups.x + group.x) * WORKGROUP + own.lane) / TEAM;
  let number = select((params.tokens + CHUNK - 1u) / CHUNK, 1u, PHASE == AT_ONCE);
  let span = select(CHUNK, params.tokens, PHASE == AT_ONCE);
  let most = (number - u32(PHASE == ENDS)) * params.count;
  let is_own = place < most;
  let near_place = min(place, most - 1u);  // those past the end work along, and store nothing
  let chunk = near_place / params.count;
  let index = near_place % params.count;
  let part = own.lane % TEAM;
  let head = index / params.head_dim;
  let first = column_start(index);
  let size = params.count * params.state_dim;  // of a state
  var column: array<f32, MAX_ROWS>;
  for (var at = 0u; at < ROWS; at++) {
    let row = at * TEAM + part;
    let place_of_row = first + min(row, params.state_dim - 1u) * params.head_dim;
    var held = 0.0;
    if (PHASE == AT_ONCE && start_pos.x != 0) {
      held = state[place_of_row];
    }
    if (PHASE == OUTS) {
      held = chunks[chunk * size + place_of_row];
    }
    column[at] = select(0.0, held, row < params.state_dim);
  }
  var steps = 0.0;
  for (var at_token = 0u; at_token < span; at_token++) {
    let token = chunk * span + at_token;
    let is_there = token < params.tokens;
    let near = min(token, params.tokens - 1u);
    let line = near * line_length();
    let b = line + group_start(head);
    let c = b + params.group_count * params.state_dim;
    let step = select(0.0, step_of(near, head), is_there);  // 0: nothing is forgotten, and nothing new
    let kept = exp(step * rates[head]);
    let value = x[line + index];
    var sum = 0.0;
    for (var at = 0u; at < ROWS; at++) {
      let row = at * TEAM + part;
      let near_row = min(row, params.state_dim - 1u);
      let taken = select(0.0, x[b + near_row], row < params.state_dim);
      column[at] = kept * column[at] + taken * step * value;
      sum += column[at] * x[c + near_row];
    }
    steps += step;
    if (PHASE != ENDS) {
      sum = sum_of_four(own, sum);
      if (part == 0u && is_own && is_there) {
        let skip = rates[2u * params.heads + head];
        out[near * params.count + index] = (sum + skip * value) * gate_of(near, index);
      }
    }
  }
  if (!is_own) {
    return;
  }
  for (var at = 0u; at < ROWS; at++) {
    let row = at * TEAM + part;
    let to = first + row * params.head_dim;
    if (row < params.state_dim) {
      if (PHASE == ENDS) {
        chunks[(chunk + 1u) * size + to] = column[at];
      } else if (chunk + 1u == number) {
        state[to] = column[at];
      }
    }
  }
  if (PHASE == ENDS && part == 0u && index % params.head_dim == 0u) {
    chunks[number * size + (chunk + 1u) * params.heads + head] = exp(steps * rates[head]);
  }
}
