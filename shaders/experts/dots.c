// Dot products of tokens with rows of an expert's weight.

#include "experts/dots.h"

enum {
  MOST_BY_INTEGERS = 16,  // tokens: more are worth dequantising a row
  WHOLES_BYTES = SCRATCH_BYTES / 2,
};

// What a thread's scratch memory begins with: its tokens are prepared once a launch.
typedef struct {
  u32 launched;
  const Call *call;
  u64 wholes[];
} Prepared;

static void *prepare(const Call *call, Share share, const Weights *kind, const f32 *x, u32 tokens, u32 octets) {
  Prepared *prepared = scratch_of(share.thread);
  u32 blocks = octets / 4;
  if (!kind->dot_rows || octets % 4) return 0;
  if (tokens > (WHOLES_BYTES - sizeof(Prepared)) / token_bytes(blocks)) return 0;
  if (prepared->launched != share.launched || prepared->call != call) {
    *prepared = (Prepared){share.launched, call};
    for (u32 token = 0; token < tokens; token++) {
      WholeToken to = whole_token(prepared->wholes, token, blocks);
      quantise_token(x + token * 32 * blocks, 0, 1, blocks, kind->paired, to);
    }
  }
  return prepared->wholes;
}

Factors factors_of(const Call *call, Share share, const LinearParams *shape, u32 tokens) {
  const Weights *kind = weights_of(call);
  const f32 *x = BUFFER(const f32, x);
  return (Factors){
      .kind = kind,
      .matrix = linear_matrix(shape, BUFFER(const u8, weight), BUFFER(const u8, scales)),
      .x = x,
      .wholes = prepare(call, share, kind, x, tokens, shape->octets),
      .room = (f32 *)((u8 *)scratch_of(share.thread) + WHOLES_BYTES),
  };
}

// Multiply TILE rows by some (a constant) tokens, whose sums stay in registers. rows: [TILE, stride].
INLINE void multiply_tile(const f32 *rows, u32 stride, const f32 *const *x, u32 columns, u32 tokens, f32 *sums) {
  f32x4 parts[TILE][TILE] = {};
  for (u32 at = 0; at < columns; at += 4) {
    f32x4 values[TILE];
    for (u32 row = 0; row < TILE; row++) values[row] = load_f32x4(rows + row * stride + at);
    for (u32 token = 0; token < tokens; token++) {
      f32x4 own = load_f32x4(x[token] + at);
      for (u32 row = 0; row < TILE; row++) parts[token][row] = fma4(own, values[row], parts[token][row]);
    }
  }
  for (u32 token = 0; token < tokens; token++) {
    for (u32 row = 0; row < TILE; row++) sums[token * TILE + row] = sum_of(parts[token][row]);
  }
}

static void multiply_floats(const Factors *factors, const u32 *rows, const Users *users, u32 slots_per_token, f32 *sums) {
  const Matrix *matrix = &factors->matrix;
  u32 columns = 4 * matrix->quads, stride = 8 * matrix->octets;
  for (u32 at = 0; at < TILE; at++) {
    factors->kind->dequantise(matrix, rows[at], 0, matrix->octets, factors->room + at * stride);
  }
  for (u32 first = 0; first < users->count; first += TILE) {
    u32 tokens = min_u32(TILE, users->count - first);
    const f32 *x[TILE];
    for (u32 at = 0; at < tokens; at++) x[at] = factors->x + users->slots[first + at] / slots_per_token * columns;
    f32 *own = sums + first * TILE;
    if (tokens == 4) multiply_tile(factors->room, stride, x, columns, 4, own);
    if (tokens == 3) multiply_tile(factors->room, stride, x, columns, 3, own);
    if (tokens == 2) multiply_tile(factors->room, stride, x, columns, 2, own);
    if (tokens == 1) multiply_tile(factors->room, stride, x, columns, 1, own);
  }
}

void multiply(const Factors *factors, u32 row, u32 count, const Users *users, u32 slots_per_token, f32 *sums) {
  u32 rows[TILE];  // the last one again where there are fewer
  for (u32 at = 0; at < TILE; at++) rows[at] = row + min_u32(at, count - 1);
  if (!factors->wholes || users->count > MOST_BY_INTEGERS) {
    multiply_floats(factors, rows, users, slots_per_token, sums);
    return;
  }
  const Matrix *matrix = &factors->matrix;
  for (u32 user = 0; user < users->count; user++) {
    WholeToken token = whole_token(factors->wholes, users->slots[user] / slots_per_token, matrix->octets / 4);
    factors->kind->dot_rows(matrix, rows, &token, 1, factors->room, sums + user * TILE, TILE);
  }
}
