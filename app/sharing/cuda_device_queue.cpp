// Implements DeviceQueue for a GPU: copies, and marks in streams. CUDA builds only.
#include "app/sharing/device_queue.h"
#include "kernels/device/cuda_runtime.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

using kernels::CudaEvent;

const CudaEvent& event_of(const DeviceQueue::Mark& mark) {
  return *static_cast<const CudaEvent*>(mark.get());
}

class CudaQueue final : public DeviceQueue {
 public:
  Mark mark(kernels::Stream stream) override {
    auto event = std::make_shared<CudaEvent>();
    event->record(stream.get());
    return event;
  }
  bool reached(const Mark& mark) override {
    if (!mark) return true;
    const cudaError_t status = cudaEventQuery(event_of(mark).get());
    if (status == cudaErrorNotReady) return false;
    CONVOY_CUDA(status);
    return true;
  }
  void order(kernels::Stream stream, const Mark& mark) override {
    if (mark) event_of(mark).make_wait(stream.get());
  }
  void wait(const Mark& mark) override {
    if (mark) event_of(mark).synchronize();
  }
  Mark copy(Direction direction, void* to, const void* from, std::size_t bytes,
            std::span<const Mark> after) override {
    const kernels::CudaStream& stream = direction == Direction::to_device ? in_ : out_;
    for (const Mark& mark : after) order(stream.view(), mark);
    kernels::copy(kernels::Backend::cuda, to, from, bytes, stream.view());
    return mark(stream.view());
  }
  void synchronize() override { kernels::synchronize(kernels::Backend::cuda); }

 private:
  kernels::CudaStream in_, out_;
};

}  // namespace

std::unique_ptr<DeviceQueue> make_cuda_queue() { return std::make_unique<CudaQueue>(); }

}  // namespace convoy::app
