// Replays a plan: one launch after the other, each shared out among the threads of a pool.
//
// The thread that drives a replay publishes a launch as a number of chunks. Whoever is awake claims one
// after the other, the driver, too, and the driver goes on when all that were claimed are done. A thread
// that is late, asleep or dead claims nothing and holds nobody up; of one that has died with a chunk in
// its hands, the driver hears nothing more, and says so after a while.
//
// The driver has other things to do, too: it returns when its time is over, or it is called back, between two
// chunks, and goes on when it is called again. The other threads need not know.

#include "kernel.h"

// One step of a plan: a launch, or a copy where `call` is null. Python writes it.
typedef struct {
  const Call *call;
  u8 *source;
  u8 *destination;
} Step;

enum {
  CHUNKS_PER_THREAD = 4,  // so that a thread that is slowed down keeps few of them
  LONG_MILLISECONDS = 8,  // a chunk that takes more is split the next time, so that the driver can return in time
  SHORT_MILLISECONDS = 1,  // one that takes less need not be split so often
  MAX_SPLITS = 64,
  MAX_CHUNKS = 0xffff,
  SPINS = 20000,  // looks for work before a thread goes to sleep: some 50 microseconds
  ASLEEP_NANOSECONDS = 1000000000,
  LOOKS = 1000,  // of the driver whether the others are done, before it asks for the time
  PATIENCE_MILLISECONDS = 10000,  // for a thread with a chunk
  BEAT_MILLISECONDS = 50,  // at most that much counts between two looks: a computer may sleep, and a tab be frozen
};

#define LOST 0xffffffffu  // instead of a step: a thread does not finish its chunk

// What is claimed of the launch that is published: its number, its chunks, those taken.
INLINE u64 claims_of(u32 launched, u32 chunks, u32 taken) { return (u64)launched << 32 | chunks << 16 | taken; }

static struct {
  _Atomic u64 claims;
  const Call *call;
  u32 groups;
  u32 chunk_groups;
  _Alignas(64) _Atomic u32 done;  // chunks of the launch; apart from what whoever looks for work reads all the time
  _Alignas(64) _Atomic u32 sleepers;
  _Atomic u32 wakes;  // what sleepers wait for a change of
  _Atomic u32 closing;
  _Atomic u32 called_back;  // the driver: set from outside where asking for the time is dear, and no deadline given
  u32 threads;
  u8 *scratch;
  // The driver's own.
  u32 chunks;
  u32 launched;
  u32 is_under_way;  // the launch: the driver returned before its end
  u32 seen;  // chunks that were done when the driver last looked
  double waited;  // milliseconds since, without progress
  double clock;  // when the driver last looked at it, as it does where it has a deadline
} pool;

void *scratch_of(u32 thread) { return pool.scratch + thread * SCRATCH_BYTES; }

extern double now(void) __attribute__((import_module("host"), import_name("now")));  // milliseconds

// Set up the pool; threads 1 and up then call work().
__attribute__((export_name("open_pool"))) void open_pool(u32 threads, u8 *scratch) {
  pool.threads = threads;
  pool.scratch = scratch;
  pool.closing = 0;
}

// Return where a word lies that calls the driver back while it is not 0.
__attribute__((export_name("called_back_at"))) _Atomic u32 *called_back_at(void) { return &pool.called_back; }

static int is_called_back(void) { return __c11_atomic_load(&pool.called_back, __ATOMIC_RELAXED) != 0; }

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

// Begin a launch: alone where it is small, else with all threads.
static void begin(const Call *call, u32 groups) {
  const Pipeline *pipeline = call->pipeline;
  u32 launched = ++pool.launched;
  u32 wanted = pool.threads * CHUNKS_PER_THREAD * pipeline->splits;
  u32 chunk_groups = max_u32(pipeline->grain, ceil_div(groups, min_u32(wanted, MAX_CHUNKS)));
  u32 chunks = pool.chunks = ceil_div(groups, chunk_groups);
  __c11_atomic_store(&pool.done, 0, __ATOMIC_RELAXED);
  if (chunks == 1) {
    pipeline->run(call, (Share){0, groups, 0, launched});
    pool.done = 1;
    return;
  }
  pool.call = call;
  pool.groups = groups;
  pool.chunk_groups = chunk_groups;
  pool.seen = 0;
  pool.waited = 0;
  __c11_atomic_store(&pool.claims, claims_of(launched, chunks, 0), __ATOMIC_SEQ_CST);
  wake_sleepers();
}

typedef enum { DONE, OUT_OF_TIME, NO_PROGRESS } Outcome;

// Wait for the chunks that other threads have claimed.
static Outcome await_others(double deadline) {
  double looked = 0;
  for (u32 looks = 1;; looks++) {
    u32 done = __c11_atomic_load(&pool.done, __ATOMIC_ACQUIRE);
    if (done >= pool.chunks) return DONE;
    if (looks % LOOKS) continue;
    double time = now();
    double passed = looked ? time - looked : 0;
    pool.waited = done == pool.seen ? pool.waited + (passed < BEAT_MILLISECONDS ? passed : BEAT_MILLISECONDS) : 0;
    pool.seen = done;
    looked = time;
    if (pool.waited > PATIENCE_MILLISECONDS) return NO_PROGRESS;
    if (time > deadline || is_called_back()) return OUT_OF_TIME;
  }
}

static int is_over(double deadline) {
  if (deadline == __builtin_inf()) return is_called_back();
  pool.clock = now();
  return pool.clock > deadline;
}

// Choose how small the chunks of a pipeline's next launch are.
static void split_by(double milliseconds, Pipeline *pipeline) {
  if (milliseconds > LONG_MILLISECONDS) pipeline->splits = min_u32(2 * pipeline->splits, MAX_SPLITS);
  if (milliseconds < SHORT_MILLISECONDS) pipeline->splits = max_u32(pipeline->splits / 2, 1);
}

// Take part in the launch that was begun, until it is done or the time is over.
static Outcome help(Pipeline *pipeline, double deadline) {
  double began = pool.clock;
  while (take_chunk(0)) {
    int is_late = is_over(deadline);
    split_by(pool.clock - began, pipeline);
    if (is_late) return OUT_OF_TIME;
    began = pool.clock;
  }
  return await_others(deadline);
}

// Replay the steps from `first` on until `deadline`, and return the first that is not done yet, or LOST.
// Whoever was told of a step goes on with it; nothing else is replayed meanwhile.
// counts: [steps, 3], workgroups x, y, z of a launch; offsets in source and destination, bytes of a copy.
__attribute__((export_name("replay"))) u32 replay(const Step *steps, const u32 *counts, u32 first, u32 last, double deadline) {
  is_over(deadline);
  for (u32 at = first; at < last; at++) {
    const Step *step = steps + at;
    const u32 *count = counts + 3 * at;
    if (step->call) {
      u32 groups = count[0] * count[1] * count[2];
      if (!groups) continue;
      if (!pool.is_under_way) begin(step->call, groups);
      Outcome outcome = help(step->call->pipeline, deadline);
      pool.is_under_way = outcome == OUT_OF_TIME;
      if (outcome != DONE) return outcome == OUT_OF_TIME ? at : LOST;
    } else {
      if (!count[2]) continue;
      __builtin_memmove(step->destination + count[1], step->source + count[0], count[2]);
    }
    if (is_over(deadline)) return at + 1;
  }
  return last;
}
