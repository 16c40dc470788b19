// How caches of keys and values are read and written on the CPU.

#pragma once

#include "kernel.h"

// Caches of one type.
typedef struct {
  // Copies so many values as floats, from `place` values on; both are multiples of four. Null: they are floats.
  void (*load)(const Call *call, const void *cache, u32 place, u32 count, f32 *to);
} Cached;

// Values that are stored one by one.
typedef struct {
  void (*store)(void *cache, u32 place, u32 count, const f32 *from);
} Stored;

enum { BLOCK_VALUES = 32 };

// Values that are stored in blocks; a block in memory begins at a multiple of four bytes.
typedef struct {
  u32 bytes;
  void (*pack)(const f32 *values, void *block);
  void (*unpack)(const void *block, f32 *values);
} CachedBlocks;
