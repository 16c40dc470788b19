// out = condition ? a : b with broadcasting, along a walk over the output's axes.

#include "elementwise/fragments/elements.h"
#include "elementwise/where.wgsl.h"
#include "kernel.h"
#include "walk.h"

static void choose(const u32 *condition, const u32 *a, const u32 *b, u32 *out, u32 count) {
  FOUR_BY_FOUR {
    u32 left = count - at;
    i32x4 mask = load_up_to_4(condition + at, left) != 0;
    STORE_EACH(select4(mask, (f32x4)load_up_to_4(a + at, left), (f32x4)load_up_to_4(b + at, left)));
  }
}

KERNEL(elementwise_where, 128) {
  const where_params *params = PARAMS(where);
  u32 first = share.first * WORKGROUP, last = min_u32(share.last * WORKGROUP, params->count);
  u32 *out = BUFFER(u32, out);
  const u32 *operands[] = {BUFFER(const u32, condition), BUFFER(const u32, a), BUFFER(const u32, b)};
  Rows rows;
  open_rows(&rows, WALK(params, first), first, 3, operands);
  for (u32 at = first; at < last; at += rows.count) {
    take_rows(&rows, last - at);
    choose(rows.row[0], rows.row[1], rows.row[2], out + at, rows.count);
  }
}
