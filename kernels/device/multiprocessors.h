// Divides the multiprocessors of a GPU into two parts. Work of different parts never waits for the
// same multiprocessor, while memory, its bandwidth, caches and copy engines stay common to both.
//
// A part is a green context of the CUDA driver. Work runs in a part if its stream was made there. A
// captured kernel keeps the part of the stream on which it was captured, whatever stream its graph
// is launched on. A kernel with more blocks than its part can hold runs them in several rounds and
// computes the same bits. A block of a later round starts only after a block has ended. So blocks
// must not wait for each other, except in a cluster.
//
// The driver must know green contexts with streams (CUDA 12.5 or later). Hopper divides its
// multiprocessors in steps of 8. Without a GPU, divide_multiprocessors() throws.
#pragma once

#include <memory>

struct CUgreenCtx_st;
struct CUstream_st;

namespace convoy::kernels {

class MultiprocessorPart {
 public:
  // Takes over the green context, which has `count` multiprocessors.
  MultiprocessorPart(CUgreenCtx_st* context, int count) : context_(context), count_(count) {}
  int count() const { return count_; }
  // Makes a stream that does not wait for the default stream. `priority` is a number as for
  // cudaStreamCreateWithPriority. The caller must destroy the stream before this part. May be
  // called from several threads. Throws std::runtime_error if the driver fails.
  CUstream_st* make_stream(int priority) const;

 private:
  struct Destroy {
    void operator()(CUgreenCtx_st* context) const;
  };
  std::unique_ptr<CUgreenCtx_st, Destroy> context_;
  int count_;
};

struct DividedMultiprocessors {
  MultiprocessorPart first, rest;
};
// Divides the current GPU into a part with `first` multiprocessors and the rest. Throws
// std::runtime_error if `first` is not a size that the GPU can separate, or if the driver is too
// old.
DividedMultiprocessors divide_multiprocessors(int first);

}  // namespace convoy::kernels
