// What every kernel for the CPU includes: its launch, its share of the work, and vectors.
//
// A kernel in C stands beside the shader of the same name and takes the same buffers, parameters,
// constants and fragments. `tools/cpu_kernels.py` writes a header for each shader, with its structs and
// figures, so that both read the same source:
//
//   #include "elementwise/unary.wgsl.h"
//
//   KERNEL(elementwise_unary, 16) {  // at least 16 workgroups are worth a thread
//     const unary_params *params = PARAMS(unary);
//     ...
//   }
//
// `share.first` to `share.last` are linear workgroups, as the shader counts them.

#pragma once

#include "simd.h"
#include "names.h"  // BINDING_*, CONSTANT_*, SLOT_*: the names that shaders use, numbered

// The share of a launch that one thread computes at a time.
typedef struct {
  u32 first;
  u32 last;  // exclusive
  u32 thread;
  u32 launched;  // counts launches: what a thread has prepared for this one, it need not prepare again
} Share;

typedef struct Call Call;
typedef void Run(const Call *call, Share share);

// A kernel with the fragments and constants that an op has chosen.
typedef struct {
  Run *run;
  u32 grain;  // workgroups that are worth a thread
  u32 splits;  // how much smaller chunks are than they would be: replay.c finds out
  const void *plugs[SLOTS];
  u32 constants[CONSTANTS];  // as bits
} Pipeline;

// A launch: a pipeline and its buffers.
struct Call {
  Pipeline *pipeline;
  void *buffers[BINDINGS];
};

// A row of the table from which the runtime finds kernels by their numbers.
typedef struct {
  Run *run;
  u32 grain;
} Kernel;

#define KERNEL(name, grain_) \
  static Run name##_run; \
  const Kernel name = {name##_run, grain_}; \
  static void name##_run(const Call *call, Share share)

// A fragment that plugs into a slot: a constant struct of functions, named by the shader's path.
#define FRAGMENT(type, name) const type name

#define PARAMS(stem) ((const stem##_params *)call->buffers[BINDING_params])
#define BUFFER(type, name) ((type *)call->buffers[BINDING_##name])
#define CONSTANT(name) (call->pipeline->constants[CONSTANT_##name])
#define FLOAT_CONSTANT(name) (as_float(CONSTANT(name)))
#define PLUG(type, slot) ((const type *)call->pipeline->plugs[SLOT_##slot])

// Memory of a thread's own, for what a kernel prepares; its contents last until the next launch.
enum { SCRATCH_BYTES = 1 << 20 };
void *scratch_of(u32 thread);
