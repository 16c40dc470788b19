// The tokens that use an expert: its rows are read once for many of them.

#pragma once

#include "simd.h"

enum { MAX_USERS = 256 };  // at a time

// Places in `chosen`: [tokens, used] that name an expert.
typedef struct {
  u32 count;
  u32 slots[MAX_USERS];
} Users;

// Find the next users of an expert, from slot `from` on; return where to go on, `slots` at the end.
INLINE u32 find_users(const u32 *chosen, u32 slots, u32 expert, u32 from, Users *users) {
  users->count = 0;
  for (; from < slots && users->count < MAX_USERS; from++) {
    if (chosen[from] == expert) users->slots[users->count++] = from;
  }
  return from;
}
