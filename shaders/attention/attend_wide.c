// Attention of a tile of query rows over one split of the context, with an online softmax: scores are kept
// for a block of positions only. Without splits the result goes straight to `out`; reduce_wide.c adds up
// splits.
//
// The splits of a few tokens begin at multiples of their length, wherever the context begins and ends: what a token
// gets is the same whether or not others are computed with it. Those of many are equally long.
//
// A tile is so many query rows that share a key and value head: rows count token by token, and within a token
// through the query heads of that group. The rows are spread evenly over params.tiles. Strides are in f32.
// sums: [splits, heads, rows, width], width a multiple of four; stats: [splits, heads, rows, 2].

#include "attention/attend.h"
#include "attention/cached.h"
#include "attention/fragments/teams.wgsl.h"
#include "linear/tokens.h"
#include "maths.h"

enum {
  BLOCK = STEP,  // positions taken at a time; a split is a multiple of it
  FEW_SPLITS = 32,  // of a few tokens, at most, but for one that a window begins in
  ROWS_AT_ONCE = 3,  // with four keys or quads of values, what 16 registers hold
  TOGETHER = 16,  // scores that become weights at a time
  ROWS_IN_PLACE = 8,  // more rows read keys and values so often that a dense copy of them pays
};

// The tile that a thread computes; all but the places lies in its scratch memory.
typedef struct {
  u32 first_row;
  u32 rows;
  u32 width;  // of a head, up to a multiple of four with zeros
  u32 batch;
  u32 kv_head;
  u32 block;  // positions at a time that fit into the memory
  f32 *queries;  // [rows, width], scaled
  f32 *sums;  // [rows, width], of values, by their weights
  f32 *scores;  // [rows, BLOCK]; then weights
  f32 *tops;  // [rows], the largest score of each
  f32 *totals;  // [rows], of weights
  f32 *shrinks;  // [rows], the factors of sums so far after a block
  Range *seen;  // [rows]
  f32 *splats;  // [ROWS_AT_ONCE, BLOCK, 4]: weights, each four times
  f32 *copies;  // [block, width]
} Work;

// Keys or values of a block of positions.
typedef struct {
  const f32 *values;
  u32 stride;  // from a position to the next
} Block;

static Row row_at(const io_params *params, const Work *work, u32 row) {
  u32 at = work->first_row + row;
  return (Row){work->batch, work->kv_head * params->group + at % params->group, at / params->group};
}

static u32 place_of(const io_params *params, Row row) {  // in q and in out
  return row.batch * params->q_batch + row.token * params->q_token + row.head * params->q_head;
}

// Copies a row of a head, times a factor, and fills it up with zeros; to: [width], from: [real].
INLINE void copy_scaled(f32 *to, const f32 *from, f32 factor, u32 real, u32 width) {
  u32 dim = 0;
  for (; dim + 4 <= real; dim += 4) store_f32x4(to + dim, load_f32x4(from + dim) * factor);
  for (; dim < real; dim++) to[dim] = from[dim] * factor;
  for (; dim < width; dim++) to[dim] = 0.0f;
}

static void begin_tile(const Call *call, Work *work, u32 thread) {
  const io_params *params = PARAMS(io);
  f32 *memory = scratch_of(thread);
  u32 rows = work->rows, width = work->width;
  work->queries = memory;
  work->sums = work->queries + rows * width;
  work->scores = work->sums + rows * width;
  work->tops = work->scores + rows * BLOCK;
  work->totals = work->tops + rows;
  work->shrinks = work->totals + rows;
  work->seen = (Range *)(work->shrinks + rows);
  work->splats = (f32 *)(work->seen + rows);
  work->copies = work->splats + ROWS_AT_ONCE * 4 * BLOCK;
  u32 left = SCRATCH_BYTES / sizeof(f32) - (u32)(work->copies - memory);
  work->block = min_u32(BLOCK, left / width);
  f32 scale = PLUG(Score, score)->query_scale(params);
  for (u32 row = 0; row < rows; row++) {
    Row place = row_at(params, work, row);
    const f32 *query = BUFFER(const f32, q) + place_of(params, place);
    copy_scaled(work->queries + row * width, query, scale, params->width, width);
    work->seen[row] = PLUG(Mask, mask)->seen(call, place.token);
    work->tops[row] = MASKED;
    work->totals[row] = 0.0f;
  }
  for (u32 at = 0; at < rows * width; at += 4) store_f32x4(work->sums + at, splat(0.0f));
}

// Returns keys or values in place, or a dense copy of them in floats, filled up with zeros.
static Block block_of(const Call *call, const Work *work, const void *cache, u32 row, u32 count) {
  const io_params *params = PARAMS(io);
  const Cached *cached = PLUG(Cached, kv);
  u32 stride = params->kv_token;
  u32 place = work->batch * params->kv_batch + work->kv_head * params->kv_head + row * stride;
  if (cached->load) {
    for (u32 at = 0; at < count; at++) {
      cached->load(call, cache, place + at * stride, work->width, work->copies + at * work->width);
    }
    return (Block){work->copies, work->width};
  }
  const f32 *values = (const f32 *)cache + place;
  int stays = work->rows <= ROWS_IN_PLACE || stride == work->width;
  if (stays && work->width == params->width) return (Block){values, stride};
  for (u32 at = 0; at < count; at++) {
    copy_scaled(work->copies + at * work->width, values + at * stride, 1.0f, params->width, work->width);
  }
  return (Block){work->copies, work->width};
}

// Sums each of four vectors.
INLINE f32x4 sums_of_four(f32x4 a, f32x4 b, f32x4 c, f32x4 d) {
  f32x4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  f32x4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

// Scores `rows` queries with the keys, four of them at a time; the last is repeated to fill up the last four.
INLINE void score_rows(const Work *work, u32 row, Block keys, u32 count, u32 rows) {
  u32 width = work->width;
  for (u32 at = 0; at < count; at += 4) {
    const f32 *query[ROWS_AT_ONCE], *key[4];
    UNROLLED for (u32 r = 0; r < rows; r++) query[r] = work->queries + (row + r) * width;
    UNROLLED for (u32 c = 0; c < 4; c++) key[c] = keys.values + min_u32(at + c, count - 1) * keys.stride;
    f32x4 dots[ROWS_AT_ONCE][4];
    UNROLLED for (u32 r = 0; r < rows; r++) {
      UNROLLED for (u32 c = 0; c < 4; c++) dots[r][c] = splat(0.0f);
    }
    for (u32 dim = 0; dim < width; dim += 4) {
      f32x4 quads[ROWS_AT_ONCE];
      UNROLLED for (u32 r = 0; r < rows; r++) quads[r] = load_f32x4(query[r]);
      UNROLLED for (u32 c = 0; c < 4; c++) {
        f32x4 quad = load_f32x4(key[c]);
        UNROLLED for (u32 r = 0; r < rows; r++) dots[r][c] = fma4(quads[r], quad, dots[r][c]);
      }
      UNROLLED for (u32 r = 0; r < rows; r++) query[r] += 4;
      UNROLLED for (u32 c = 0; c < 4; c++) key[c] += 4;
    }
    UNROLLED for (u32 r = 0; r < rows; r++) {
      f32x4 scores = sums_of_four(dots[r][0], dots[r][1], dots[r][2], dots[r][3]);
      store_f32x4(work->scores + (row + r) * BLOCK + at, scores);
    }
  }
}

// Adds weighted values to `quads` quads of the sums of `rows` rows; splats: [rows, BLOCK, 4], their weights.
INLINE void add_quads(const Work *work, u32 row, Block values, u32 count, u32 dim, u32 rows, u32 quads) {
  f32 *sums = work->sums + row * work->width + dim;
  f32x4 own[ROWS_AT_ONCE][4];
  UNROLLED for (u32 r = 0; r < rows; r++) {
    f32 shrink = work->shrinks[row + r];
    const f32 *so_far = sums + r * work->width;
    UNROLLED for (u32 quad = 0; quad < quads; quad++) own[r][quad] = shrink * load_f32x4(so_far + 4 * quad);
  }
  const f32 *value = values.values + dim, *splats = work->splats;
  for (u32 at = 0; at < count; at++, value += values.stride, splats += 4) {
    f32x4 weight[ROWS_AT_ONCE];
    UNROLLED for (u32 r = 0; r < rows; r++) weight[r] = load_f32x4(splats + r * 4 * BLOCK);
    UNROLLED for (u32 quad = 0; quad < quads; quad++) {
      f32x4 loaded = load_f32x4(value + 4 * quad);
      UNROLLED for (u32 r = 0; r < rows; r++) own[r][quad] = fma4(weight[r], loaded, own[r][quad]);
    }
  }
  UNROLLED for (u32 r = 0; r < rows; r++) {
    UNROLLED for (u32 quad = 0; quad < quads; quad++) store_f32x4(sums + r * work->width + 4 * quad, own[r][quad]);
  }
}

INLINE void add_rows(const Work *work, u32 row, Block values, u32 count, u32 rows) {
  UNROLLED for (u32 r = 0; r < rows; r++) {
    const f32 *weights = work->scores + (row + r) * BLOCK;
    f32 *splats = work->splats + r * 4 * BLOCK;
    for (u32 at = 0; at < count; at += 4) {
      f32x4 four = load_f32x4(weights + at);
      store_f32x4(splats + 4 * at, four.xxxx);
      store_f32x4(splats + 4 * at + 4, four.yyyy);
      store_f32x4(splats + 4 * at + 8, four.zzzz);
      store_f32x4(splats + 4 * at + 12, four.wwww);
    }
  }
  u32 dim = 0;
  for (; dim + 16 <= work->width; dim += 16) add_quads(work, row, values, count, dim, rows, 4);
  for (; dim < work->width; dim += 4) add_quads(work, row, values, count, dim, rows, 1);
}

// Rows that are left are taken three at a time, four as two and two.
static u32 rows_at_once(u32 left) { return left == 4 ? 2 : min_u32(left, ROWS_AT_ONCE); }

static void score_block(const Work *work, Block keys, u32 count) {
  for (u32 row = 0; row < work->rows;) {
    u32 rows = rows_at_once(work->rows - row);
    if (rows == 1) score_rows(work, row, keys, count, 1);
    if (rows == 2) score_rows(work, row, keys, count, 2);
    if (rows == 3) score_rows(work, row, keys, count, 3);
    row += rows;
  }
}

static void add_block(const Work *work, Block values, u32 count) {
  for (u32 row = 0; row < work->rows;) {
    u32 rows = rows_at_once(work->rows - row);
    if (rows == 1) add_rows(work, row, values, count, 1);
    if (rows == 2) add_rows(work, row, values, count, 2);
    if (rows == 3) add_rows(work, row, values, count, 3);
    row += rows;
  }
}

// exp(x) for x <= 0, in fewer steps than exp4: 2^n exp(r), with r in [-ln 2 / 2, ln 2 / 2]. Below the smallest
// normal number it stays there.
INLINE f32x4 exp_of_negative(f32x4 x) {
  const f32 whole = 0x1.8p23f + 127.0f;  // a sum with it is rounded; its lowest bits are n with an exponent's bias
  f32x4 within = at_least4(x, -87.0f);
  f32x4 shifted = fma4(within, splat(1.44269504f), splat(whole));
  f32x4 n = shifted - whole;
  f32x4 r = fma4(n, splat(-0.693145752f), within);
  r = fma4(n, splat(-1.42860677e-6f), r);
  f32x4 sum = splat(0.0013814596f);
  sum = fma4(sum, r, splat(0.0083687175f));
  sum = fma4(sum, r, splat(0.04166839f));
  sum = fma4(sum, r, splat(0.16666521f));
  sum = fma4(sum, r, splat(0.49999994f));
  sum = fma4(sum, r * r, r) + 1.0f;
  return sum * (f32x4)((i32x4)shifted << 23);
}

// The larger of each; of a number and NaN the number.
INLINE f32x4 larger(f32x4 numbers, f32x4 b) { return (f32x4)wasm_f32x4_pmax((v128_t)numbers, (v128_t)b); }

// Masks a row's scores of the positions from `first` on and makes them weights.
static void weigh(const Call *call, const Work *work, u32 row, u32 first, u32 count) {
  const io_params *params = PARAMS(io);
  const Mask *mask = PLUG(Mask, mask);
  const Score *score = PLUG(Score, score);
  f32 *scores = work->scores + row * BLOCK;
  u32 filled = ceil_div(count, TOGETHER) * TOGETHER;
  if (score->cap) score->cap(params, filled, scores);
  if (mask->apply) mask->apply(call, row_at(params, work, row), first, count, scores);
  Range seen = work->seen[row];
  u32 begin = min_u32(max_u32(seen.first, first) - first, count);
  u32 end = min_u32(max_u32(seen.end, first) - first, count);
  for (u32 at = 0; at < begin; at++) scores[at] = MASKED;
  for (u32 at = end; at < filled; at++) scores[at] = MASKED;

  f32x4 tops = splat(work->tops[row]);
  for (u32 at = 0; at < filled; at += 4) tops = larger(tops, load_f32x4(scores + at));
  f32 top = max_of(tops);
  if (top == MASKED) {  // nothing is seen so far, but NaN stays
    for (u32 at = 0; at < filled; at++) scores[at] = scores[at] == scores[at] ? 0.0f : scores[at];
    work->shrinks[row] = 1.0f;
    return;
  }
  f32x4 total = splat(0.0f);
  for (u32 at = 0; at < filled; at += TOGETHER) {
    UNROLLED for (u32 quad = 0; quad < TOGETHER; quad += 4) {
      f32x4 weights = exp_of_negative(load_f32x4(scores + at + quad) - top);
      store_f32x4(scores + at + quad, weights);
      total += weights;
    }
  }
  // The smallest normal numbers vanish in a total, but not in a sum of zeros.
  for (u32 at = 0; at < begin; at++) scores[at] = 0.0f;
  for (u32 at = end; at < count; at++) scores[at] = 0.0f;
  f32 shrink = exp_of_negative(splat(work->tops[row] - top)).x;
  work->shrinks[row] = shrink;
  work->totals[row] = work->totals[row] * shrink + sum_of(total);
  work->tops[row] = top;
}

static void attend(const Call *call, const Work *work, u32 begin, u32 end) {
  const io_params *params = PARAMS(io);
  u32 count;
  for (u32 first = begin; first < end; first += count) {
    u32 cache_row = first % params->kv_rows;  // caches may be rings with fewer rows than there are positions
    count = min_u32(min_u32(work->block, end - first), params->kv_rows - cache_row);
    score_block(work, block_of(call, work, BUFFER(const void, k), cache_row, count), count);
    for (u32 row = 0; row < work->rows; row++) weigh(call, work, row, first, count);
    add_block(work, block_of(call, work, BUFFER(const void, v), cache_row, count), count);
  }
}

static void store_split(const Call *call, const Work *work, u32 split) {
  const io_params *params = PARAMS(io);
  u32 head = work->batch * params->kv_heads + work->kv_head;
  u32 at = (split * params->heads + head) * params->rows + work->first_row;
  u32 count = work->rows * work->width;
  copy_scaled(BUFFER(f32, sums) + at * work->width, work->sums, 1.0f, count, count);
  f32 *stats = BUFFER(f32, stats) + 2 * at;
  for (u32 row = 0; row < work->rows; row++) {
    stats[2 * row] = work->tops[row];
    stats[2 * row + 1] = work->totals[row];
  }
}

static void store_rows(const Call *call, const Work *work) {
  const io_params *params = PARAMS(io);
  for (u32 row = 0; row < work->rows; row++) {
    Row place = row_at(params, work, row);
    f32 *out = BUFFER(f32, out) + place_of(params, place);
    f32 share = share_of(call, work->totals[row], work->tops[row], place.head);
    copy_scaled(out, work->sums + row * work->width, share, params->width, params->width);
  }
}

KERNEL(attention_attend_wide, 1) {
  const io_params *params = PARAMS(io);
  const Mask *mask = PLUG(Mask, mask);
  u32 tile_rows = ceil_div(params->rows, params->tiles);
  u32 last_token = (params->rows - 1) / params->group;
  u32 context_begin = mask->seen(call, 0).first, context_end = mask->seen(call, last_token).end;
  u32 split_length = ceil_div(context_end - context_begin, params->splits * BLOCK) * BLOCK;
  int are_few = params->rows <= FEW_TOKENS * params->group;
  if (are_few) {
    split_length = ceil_div(params->kv_rows, FEW_SPLITS * BLOCK) * BLOCK;
    context_begin -= context_begin % split_length;
  }
  u32 of_split = params->heads * params->tiles;
  u32 last = min_u32(share.last, params->splits * of_split);
  for (u32 index = share.first; index < last; index++) {
    u32 split = index / of_split, head = index % params->heads;
    // The last tiles see most: they come first, so that threads end at about the same time.
    u32 tile = params->tiles - 1 - index % of_split / params->heads;
    u32 first_row = tile * tile_rows;
    if (first_row >= params->rows) continue;
    Work work = {
      .first_row = first_row,
      .rows = min_u32(tile_rows, params->rows - first_row),
      .width = ceil_div(params->width, 4) * 4,
      .batch = head / params->kv_heads,
      .kv_head = head % params->kv_heads,
    };
    begin_tile(call, &work, share.thread);
    u32 begin = context_begin + split * split_length, end = begin + split_length;
    u32 first_token = first_row / params->group, own_last = (first_row + work.rows - 1) / params->group;
    u32 first_seen = mask->seen(call, first_token).first;
    begin = max_u32(begin, are_few ? first_seen - first_seen % BLOCK : first_seen);
    attend(call, &work, begin, min_u32(end, mask->seen(call, own_last).end));
    if (params->splits > 1) {
      store_split(call, &work, split);
    } else {
      store_rows(call, &work);
    }
  }
}
