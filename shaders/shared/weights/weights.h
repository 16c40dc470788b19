// Weights as kernels in C read them: every kind behind one interface, beside the shader of the same name.
//
//   const Weights *kind = weights_of(call);
//   Matrix matrix = linear_matrix(&params->shape, BUFFER(const u8, weight), BUFFER(const u8, scales));
//   kind->dequantise(&matrix, row, 0, matrix.octets, out);

#pragma once

#include "kernel.h"
#include "linear/fragments/params.wgsl.h"
#include "linear/tokens.h"

// A weight in memory: [rows, 4 quads]. The scales of q4gsw lie in up to three parts, in which a row has its
// first scale `row_step` behind that of the row before.
typedef struct {
  const u8 *weight;
  const u8 *scales;  // unread where a kind has none
  u32 quads;
  u32 octets;
  u32 octets_per_group;  // q4gsw only
  u32 part_ends[2];
  u32 part_offsets[3];
  u32 part_strides[3];  // to the scale of the next group
  u32 row_step;
  u32 high_first;  // whether the even column of each byte is in its high nibble; q4gsw by octets only
} Matrix;

// A kind of weights.
typedef struct {
  // Computes the values of `count` octets of a row, from `octet` on: 8 floats each, zeros past the row's end.
  void (*dequantise)(const Matrix *matrix, u32 row, u32 octet, u32 count, f32 *out);
  // Computes the products of four rows with one, two or four tokens in integers; null for kinds that are read by
  // octets alone. `room` is for eight floats a row and block; sums: [tokens, stride].
  void (*dot_rows)(
      const Matrix *matrix, const u32 *rows, const WholeToken *x, u32 tokens, f32 *room, f32 *sums, u32 stride);
  u32 paired;  // whether neighbouring columns share a byte, which is the order of a token's integers
} Weights;

// The kind that is plugged in; octets of blocks have no fragment of their own on the CPU.
INLINE const Weights *weights_of(const Call *call) {
  const Weights *by_octets = PLUG(Weights, weight);
  return by_octets ? by_octets : PLUG(Weights, blocks);
}

// The weight of a linear, or of experts.
INLINE Matrix linear_matrix(const LinearParams *shape, const u8 *weight, const u8 *scales) {
  return (Matrix){
      .weight = weight,
      .scales = scales,
      .quads = shape->quads,
      .octets = shape->octets,
      .octets_per_group = shape->octets_per_group,
      .part_ends = {shape->part_ends.x, shape->part_ends.y},
      .part_offsets = {shape->part_offsets.x, shape->part_offsets.y, shape->part_offsets.z},
      .part_strides = {shape->part_strides.x, shape->part_strides.y, shape->part_strides.z},
      .row_step = 1,
  };
}

// A table of embeddings, of which q4gsw has the scales row by row.
INLINE Matrix table_matrix(
    u32 quads, u32 octets_per_group, u32 row_groups, u32 high_first, const u8 *weight, const u8 *scales) {
  return (Matrix){
      .weight = weight,
      .scales = scales,
      .quads = quads,
      .octets = ceil_div(quads, 2),
      .octets_per_group = octets_per_group,
      .part_ends = {~0u, ~0u},
      .part_strides = {1},
      .row_step = row_groups,
      .high_first = high_first,
  };
}

// For q4gsw: the index of the scale of a row's first group, and the stride to that of the next group.
INLINE u32x2 row_scales(const Matrix *matrix, u32 row) {
  u32 part = (row >= matrix->part_ends[0]) + (row >= matrix->part_ends[1]);
  return (u32x2){matrix->part_offsets[part] + row * matrix->row_step, matrix->part_strides[part]};
}
