// A piece of a training step's backward pass, to be computed beside communication: the gradient of a convolution, whose
// blocks stay on their multiprocessors to its end, and a pass over memory, about as long each.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::app {

class BackwardSample {
 public:
  // Its operations take longer the more images; 256: about 80 us each on an H200. In bf16, in memory of the current GPU, 1.3
  // MB an image. CUDA alone.
  explicit BackwardSample(std::int64_t images);
  int operations() const { return static_cast<int>(launches_.size()); }
  void launch(kernels::Stream stream) const {
    for (const kernels::Launch& launch : launches_) launch(stream);
  }

 private:
  struct Release {
    void operator()(std::byte* data) const;
  };
  using Memory = std::unique_ptr<std::byte, Release>;

  void add(const kernels::Kernel& kernel, const kernels::KernelRequest& request);
  void* reserve(std::size_t bytes);

  std::vector<Memory> memory_;
  std::vector<kernels::Launch> launches_;
};

}  // namespace convoy::app
