// A sample of the backward pass, which `bench collectives` computes during communication. It has
// two operations that take about the same time: the gradient of a convolution, whose thread blocks
// occupy their multiprocessors until the kernel ends, and the gradient of a ReLU, which is limited
// by memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::app {

class BackwardSample {
 public:
  // Prepares the operations in bf16 on the current GPU, with 1.3 MB of memory per image. With 256
  // images each operation takes about 80 us on an H200. The time grows with the number of images.
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
