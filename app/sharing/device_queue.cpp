#include "app/sharing/device_queue.h"

#include <cstring>

namespace convoy::app {
namespace {

class HostQueue final : public DeviceQueue {
 public:
  Mark mark(kernels::Stream) override { return nullptr; }
  bool reached(const Mark&) override { return true; }
  void order(kernels::Stream, const Mark&) override {}
  void wait(const Mark&) override {}
  Mark copy(Direction, void* to, const void* from, std::size_t bytes, std::span<const Mark>) override {
    std::memcpy(to, from, bytes);
    return nullptr;
  }
  void synchronize() override {}
};

}  // namespace

std::unique_ptr<DeviceQueue> make_device_queue(kernels::Backend backend) {
  if (backend == kernels::Backend::cuda) return make_cuda_queue();
  return std::make_unique<HostQueue>();
}

}  // namespace convoy::app
