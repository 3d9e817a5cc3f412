// A sample of the backward pass, to compute during communication: the gradient of a convolution,
// whose blocks occupy their multiprocessors to its end, and a pass over memory that takes about as
// long.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::app {

class BackwardSample {
 public:
  // With 256 images each operation takes about 80 us on an H200; the time grows with the images.
  // Uses bf16 and 1.3 MB an image on the current GPU. CUDA only.
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
