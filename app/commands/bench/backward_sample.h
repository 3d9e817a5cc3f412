// Two operations of a backward pass. `bench collectives` runs them during communication, to measure
// the overlap. Both take about the same time. The gradient of a convolution has thread blocks that
// occupy their multiprocessors until the kernel ends. The gradient of a ReLU is limited by memory
// bandwidth.
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
