// out[i] = row indices[i] of the table, dequantised, if that row is bound. indices: [count]; out: [count, columns].

#include "copies/embedding_quantised.wgsl.h"
#include "shared/weights/weights.h"

KERNEL(copies_embedding_quantised, 4) {
  const embedding_quantised_params *params = PARAMS(embedding_quantised);
  const TableShape *shape = &params->shape;
  const i32 *indices = BUFFER(const i32, indices);
  Matrix table = table_matrix(
      shape->quads, shape->octets_per_group, shape->row_groups, CONSTANT(HIGH_FIRST), BUFFER(const u8, weight),
      BUFFER(const u8, scales));
  const Weights *kind = weights_of(call);
  u32 last = min_u32(share.last * WORKGROUP, params->count * shape->octets);
  for (u32 at = share.first * WORKGROUP, next; at < last; at = next) {
    u32 token = at / shape->octets, octet = at % shape->octets;
    next = min_u32(last, (token + 1) * shape->octets);
    u32 index = (u32)(indices[token] < 0 ? 0 : indices[token]);
    // A row before the bound ones wraps around to a number past them.
    u32 row = min_u32(index, params->rows - 1) - params->first_row;
    if (row < params->bound_rows) kind->dequantise(&table, row, octet, next - at, BUFFER(f32, out) + 8 * at);
  }
}
