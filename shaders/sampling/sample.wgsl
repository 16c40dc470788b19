// Draws the next token from the logits, hands it to the next step, and moves that step's live
// scalars on: a decoder then runs step after step without the host. One workgroup, with a
// fragment that says how many invocations it has, and how many logits each loads at once.
//
// Order and meaning of the settings are those of py_runtime/sampling: bias, penalties, temperature,
// top_k, top_p, min_p. Nothing is sorted. The k-th largest logit is found by its bits, eight at a
// time; top_p by drawing: a token with too much probability above it is refused, and with it
// everything below it, until one is accepted. What is accepted has the distribution of the sorted
// way, exactly.
//
// Where a decoder computed several tokens at once, of which all but the first were proposed, each
// draw has a row of logits of its own, and the first that differs from what was proposed is the last.
// needs: size = sampling/fragments/size_*

struct Params {
  vocabulary: u32,
  greedy: u32,
  top_k: u32,  // 0: off
  top_p: f32,
  log_min_p: f32,  // far below zero: off
  inverse_temperature: f32,
  repetition_penalty: f32,
  frequency_penalty: f32,
  presence_penalty: f32,
  has_history: u32,
  has_bias: u32,
  seed: u32,
  changes: u32,  // words of the arena that move on with the position
  row_stride: u32,  // from the logits of one draw to those of the next; 0: they are computed between
}

struct State {
  drawn: u32,  // tokens of this batch so far
  ended: u32,  // whether one of them was not the one that was proposed: no other follows
  draws: u32,  // random numbers used since the answer began
  tokens: array<u32>,  // with a row_stride, the proposed ones until they are drawn
}

const NOTHING = -3.0e38;  // below any logit; compilers may assume nothing is infinite
const NO_TOKEN = 0xffffffffu;
const IN_PROMPT = 0x80000000u;
const MAX_ROUNDS = 64u;

@group(0) @binding(0) var<storage, read> logits: array<f32>;  // [rows, V]
@group(0) @binding(1) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> bias: array<f32>;  // [V]
@group(0) @binding(3) var<storage, read_write> history: array<u32>;  // [V]: how often written, and IN_PROMPT
@group(0) @binding(4) var<storage, read_write> adjusted: array<f32>;  // [V]
@group(0) @binding(5) var<storage, read_write> state: State;
@group(0) @binding(6) var<storage, read_write> next_input: array<u32>;  // the decoder's tokens [1, 1]
@group(0) @binding(7) var<storage, read> arena_changes: array<vec2u>;  // (word, what is added to it)
@group(0) @binding(8) var<storage, read_write> arena: array<u32>;

var<workgroup> values: array<f32, WORKGROUP>;
var<workgroup> owners: array<u32, WORKGROUP>;
var<workgroup> histogram: array<atomic<u32>, 256>;
var<workgroup> shared_value: f32;
var<workgroup> shared_token: u32;

fn adjust(token: u32, logit: f32) -> f32 {
  var value = logit;
  let is_number = (bitcast<u32>(value) & 0x7fffffffu) <= 0x7f800000u;
  if (!is_number || value < NOTHING) {
    return NOTHING;
  }
  if (params.has_bias != 0u) {
    value += bias[token];
  }
  if (params.has_history != 0u && history[token] != 0u) {
    value = select(value * params.repetition_penalty, value / params.repetition_penalty, value > 0.0);
    let written = history[token] & ~IN_PROMPT;
    if (written > 0u) {
      value -= params.presence_penalty + f32(written) * params.frequency_penalty;
    }
  }
  return clamp(value * params.inverse_temperature, NOTHING, -NOTHING);
}

// One value for every invocation; a barrier before and after it.
fn told_by_first(lane: u32, value: f32) -> f32 {
  if (lane == 0u) {
    shared_value = value;
  }
  return workgroupUniformLoad(&shared_value);
}

fn sum_of_all(lane: u32, value: f32) -> f32 {
  values[lane] = value;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) {
      values[lane] += values[lane + half];
    }
    workgroupBarrier();
  }
  return told_by_first(lane, values[0]);
}

// The token of the largest value, the lowest of several; its value is adjusted[token].
fn largest_of_all(lane: u32, value: f32, token: u32) -> u32 {
  values[lane] = value;
  owners[lane] = token;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) {
      let other = values[lane + half];
      if (other > values[lane] || (other == values[lane] && owners[lane + half] < owners[lane])) {
        values[lane] = other;
        owners[lane] = owners[lane + half];
      }
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    shared_token = owners[0];
  }
  return workgroupUniformLoad(&shared_token);
}

fn adjust_all(lane: u32) -> u32 {
  var best = NOTHING;
  var best_token = NO_TOKEN;
  let last = params.vocabulary - 1u;
  let row = state.drawn * params.row_stride;
  for (var first = lane; first <= last; first += WORKGROUP * AT_ONCE) {
    // All loads come before the first store: one that follows a store waits for it.
    var loaded: array<f32, AT_ONCE>;
    for (var at = 0u; at < AT_ONCE; at++) {
      loaded[at] = logits[row + min(first + at * WORKGROUP, last)];
    }
    for (var at = 0u; at < AT_ONCE; at++) {
      let token = first + at * WORKGROUP;
      if (token > last) {
        break;
      }
      let value = adjust(token, loaded[at]);
      if (params.greedy == 0u) {
        adjusted[token] = value;
      }
      if (value > best) {
        best = value;
        best_token = token;
      }
    }
  }
  return largest_of_all(lane, best, best_token);
}

// Floats as integers of the same order.
fn ordered(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

// The bits, in that order, of the k-th largest adjusted value.
fn kth_largest(lane: u32, k: u32) -> u32 {
  var prefix = 0u;
  var missing = k;
  for (var shift = 24i; shift >= 0i; shift -= 8i) {
    for (var bin = lane; bin < 256u; bin += WORKGROUP) {
      atomicStore(&histogram[bin], 0u);
    }
    workgroupBarrier();
    for (var token = lane; token < params.vocabulary; token += WORKGROUP) {
      let key = ordered(adjusted[token]);
      // A shift by 32 is none at all, so the first round takes every key.
      if (shift == 24i || (key >> u32(shift + 8i)) == (prefix >> u32(shift + 8i))) {
        atomicAdd(&histogram[(key >> u32(shift)) & 255u], 1u);
      }
    }
    workgroupBarrier();
    if (lane == 0u) {
      var bin = 255u;
      var above = 0u;
      while (bin > 0u && above + atomicLoad(&histogram[bin]) < missing) {
        above += atomicLoad(&histogram[bin]);
        bin--;
      }
      owners[0] = bin;
      owners[1] = missing - above;
    }
    workgroupBarrier();
    prefix |= owners[0] << u32(shift);
    missing = owners[1];
    workgroupBarrier();
  }
  return prefix;
}

// Three rounds of xorshift and multiply per word: neighbouring counters give unrelated numbers.
fn scrambled(word: u32) -> u32 {
  var bits = word ^ (word >> 16u);
  bits *= 0x7feb352du;
  bits ^= bits >> 15u;
  bits *= 0x846ca68bu;
  return bits ^ (bits >> 16u);
}

// From 0 up to, not including, 1.
fn random(draw: u32) -> f32 {
  let bits = scrambled(draw ^ scrambled(params.seed));
  return f32(bits >> 8u) / 16777216.0;
}

// A token whose key is at least `lowest`, by its probability; `number` is from 0 to 1.
fn draw(lane: u32, top: f32, lowest: u32, number: f32) -> u32 {
  var own = 0.0;
  for (var token = lane; token < params.vocabulary; token += WORKGROUP) {
    if (ordered(adjusted[token]) >= lowest) {
      own += exp(adjusted[token] - top);
    }
  }
  // Sums up to and including each invocation.
  values[lane] = own;
  workgroupBarrier();
  for (var reach = 1u; reach < WORKGROUP; reach *= 2u) {
    var before = 0.0;
    if (lane >= reach) {
      before = values[lane - reach];
    }
    workgroupBarrier();
    values[lane] += before;
    workgroupBarrier();
  }
  let wanted = number * values[WORKGROUP - 1u];
  var start = 0.0;
  if (lane > 0u) {
    start = values[lane - 1u];
  }
  if (lane == 0u) {
    shared_token = NO_TOKEN;
  }
  workgroupBarrier();
  if (start <= wanted && wanted < values[lane]) {
    var sum = start;
    var drawn = NO_TOKEN;
    for (var token = lane; token < params.vocabulary; token += WORKGROUP) {
      if (ordered(adjusted[token]) >= lowest && sum <= wanted) {
        drawn = token;
        sum += exp(adjusted[token] - top);
      }
    }
    shared_token = drawn;
  }
  return workgroupUniformLoad(&shared_token);
}

// The probability, not yet divided by the sum of all, of the tokens from a key on.
fn mass_from(lane: u32, top: f32, lowest: u32) -> f32 {
  var own = 0.0;
  for (var token = lane; token < params.vocabulary; token += WORKGROUP) {
    if (ordered(adjusted[token]) >= lowest) {
      own += exp(adjusted[token] - top);
    }
  }
  return sum_of_all(lane, own);
}

fn sample(lane: u32, likeliest: u32) -> u32 {
  let top = told_by_first(lane, adjusted[min(likeliest, params.vocabulary - 1u)]);
  var kept = 0u;  // the lowest key that top_k keeps
  if (params.top_k > 0u && params.top_k < params.vocabulary) {
    kept = kth_largest(lane, params.top_k);
  }
  var lowest = max(kept, ordered(max(top + params.log_min_p, NOTHING)));
  var allowed = 0.0;  // the mass above an accepted token is below it
  if (params.top_p < 1.0) {
    allowed = params.top_p * mass_from(lane, top, kept);
  }
  let first_draw = state.draws;
  for (var round = 0u; round < MAX_ROUNDS; round++) {
    let token = draw(lane, top, lowest, random(first_draw + round));
    if (lane == 0u) {
      state.draws = first_draw + round + 1u;
    }
    if (token == NO_TOKEN) {
      break;  // rounding put the number past the last sum
    }
    if (params.top_p >= 1.0) {
      return token;
    }
    let key = ordered(adjusted[token]);
    if (mass_from(lane, top, key + 1u) < allowed) {
      return token;
    }
    lowest = max(lowest, key + 1u);
  }
  return likeliest;
}

fn hand_over(token: u32) {
  let index = state.drawn;
  if (params.row_stride != 0u && state.tokens[index] != token) {
    state.ended = 1u;
  }
  state.tokens[index] = token;
  state.drawn = index + 1u;
  next_input[0] = min(token, params.vocabulary - 1u);
  if (params.has_history != 0u && token < params.vocabulary) {
    history[token] += 1u;
  }
  for (var at = 0u; at < params.changes; at++) {
    let change = arena_changes[at];
    arena[change.x] += change.y;
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
  if (lane == 0u) {
    shared_token = state.ended;
  }
  if (workgroupUniformLoad(&shared_token) != 0u) {
    return;
  }
  var token = adjust_all(lane);
  storageBarrier();
  workgroupBarrier();
  if (params.greedy == 0u && token != NO_TOKEN) {
    token = sample(lane, token);
  }
  if (lane == 0u) {
    hand_over(token);
  }
}
