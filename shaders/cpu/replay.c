// Replays a plan: one launch after the other, each shared out among the threads of a pool.
//
// The thread that drives a replay publishes a launch as a number of chunks. Whoever is awake claims one
// after the other, the driver, too, and the driver goes on when all that were claimed are done. A thread
// that is late, asleep or dead claims nothing and holds nobody up.

#include "kernel.h"

// One step of a plan: a launch, or a copy where `call` is null. Python writes it.
typedef struct {
  const Call *call;
  u8 *source;
  u8 *destination;
} Step;

enum {
  CHUNKS_PER_THREAD = 4,  // so that a thread that is slowed down keeps few of them
  MAX_CHUNKS = 0xffff,
  SPINS = 20000,  // looks for work before a thread goes to sleep: some 50 microseconds
  ASLEEP_NANOSECONDS = 1000000000,
};

// What is claimed of the launch that is published: its number, its chunks, those taken.
INLINE u64 claims_of(u32 launched, u32 chunks, u32 taken) { return (u64)launched << 32 | chunks << 16 | taken; }

static struct {
  _Atomic u64 claims;
  _Atomic u32 done;  // chunks of the launch
  _Atomic u32 sleepers;
  _Atomic u32 wakes;  // what sleepers wait for a change of
  _Atomic u32 closing;
  const Call *call;
  u32 groups;
  u32 chunk_groups;
  u32 launched;
  u32 threads;
  u8 *scratch;
} pool;

void *scratch_of(u32 thread) { return pool.scratch + thread * SCRATCH_BYTES; }

extern double now(void) __attribute__((import_module("host"), import_name("now")));  // milliseconds

// Set up the pool; threads 1 and up then call work().
__attribute__((export_name("open_pool"))) void open_pool(u32 threads, u8 *scratch) {
  pool.threads = threads;
  pool.scratch = scratch;
  pool.closing = 0;
}

// Compute one chunk, if there is one left.
static int take_chunk(u32 thread) {
  u64 claims = __c11_atomic_load(&pool.claims, __ATOMIC_ACQUIRE);
  for (;;) {
    u32 taken = (u32)claims & 0xffff, chunks = (u32)claims >> 16;
    if (taken >= chunks) return 0;
    if (__c11_atomic_compare_exchange_weak(&pool.claims, &claims, claims + 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      u32 first = taken * pool.chunk_groups;
      Share share = {first, min_u32(first + pool.chunk_groups, pool.groups), thread, (u32)(claims >> 32)};
      pool.call->pipeline->run(pool.call, share);
      __c11_atomic_fetch_add(&pool.done, 1, __ATOMIC_RELEASE);
      return 1;
    }
  }
}

static void wake_sleepers(void) {
  if (!__c11_atomic_load(&pool.sleepers, __ATOMIC_SEQ_CST)) return;
  __c11_atomic_fetch_add(&pool.wakes, 1, __ATOMIC_SEQ_CST);
  __builtin_wasm_memory_atomic_notify((int *)&pool.wakes, ~0u);
}

// Help with whatever is published, until the pool closes: what all threads but the driving one do.
__attribute__((export_name("work"))) void work(u32 thread) {
  while (!__c11_atomic_load(&pool.closing, __ATOMIC_ACQUIRE)) {
    u32 wakes = __c11_atomic_load(&pool.wakes, __ATOMIC_SEQ_CST);
    u32 spins = 0;
    while (spins < SPINS) spins = take_chunk(thread) ? 0 : spins + 1;
    __c11_atomic_fetch_add(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
    if (!take_chunk(thread)) __builtin_wasm_memory_atomic_wait32((int *)&pool.wakes, (int)wakes, ASLEEP_NANOSECONDS);
    __c11_atomic_fetch_sub(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
  }
}

__attribute__((export_name("close_pool"))) void close_pool(void) {
  __c11_atomic_store(&pool.closing, 1, __ATOMIC_RELEASE);
  wake_sleepers();
}

static void launch(const Call *call, u32 groups) {
  const Pipeline *pipeline = call->pipeline;
  u32 launched = ++pool.launched;
  u32 chunk_groups = max_u32(pipeline->grain, ceil_div(groups, pool.threads * CHUNKS_PER_THREAD));
  chunk_groups = max_u32(chunk_groups, ceil_div(groups, MAX_CHUNKS));
  if (pool.threads == 1 || groups <= chunk_groups) {
    pipeline->run(call, (Share){0, groups, 0, launched});
    return;
  }
  u32 chunks = ceil_div(groups, chunk_groups);
  pool.call = call;
  pool.groups = groups;
  pool.chunk_groups = chunk_groups;
  __c11_atomic_store(&pool.done, 0, __ATOMIC_RELAXED);
  __c11_atomic_store(&pool.claims, claims_of(launched, chunks, 0), __ATOMIC_SEQ_CST);
  wake_sleepers();
  while (take_chunk(0)) {
  }
  while (__c11_atomic_load(&pool.done, __ATOMIC_ACQUIRE) < chunks) {
  }
}

// Replay the steps from `first` on until `deadline`, and return the first that was not replayed.
// counts: [steps, 3], workgroups x, y, z of a launch; offsets in source and destination, bytes of a copy.
__attribute__((export_name("replay"))) u32 replay(const Step *steps, const u32 *counts, u32 first, u32 last, double deadline) {
  for (u32 at = first; at < last; at++) {
    const Step *step = steps + at;
    const u32 *count = counts + 3 * at;
    if (!step->call) {
      if (count[2]) __builtin_memmove(step->destination + count[1], step->source + count[0], count[2]);
      continue;
    }
    u32 groups = count[0] * count[1] * count[2];
    if (!groups) continue;
    launch(step->call, groups);
    if (deadline < __builtin_inf() && now() > deadline) return at + 1;
  }
  return last;
}
