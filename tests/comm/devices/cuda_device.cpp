#include <fmt/format.h>

#include "comm/nccl/nccl_collectives.h"
#include "kernels/device/cuda_runtime.h"
#include "tests/comm/devices/host_device.h"

namespace convoy::test {
namespace {

class CudaDevice : public Device {
 public:
  CudaDevice(std::string name, comm::Sums sums) : name_(std::move(name)), sums_(sums) {}
  std::string name() const override { return name_; }
  std::string missing(const comm::Communicator& ranks) override {
    int found = 0;
    if (cudaGetDeviceCount(&found) != cudaSuccess) found = 0;
    cudaGetLastError();
    found = ranks.all_reduce(std::int32_t{found}, comm::ReduceOp::min, "devices");
    if (found < ranks.local_size())
      return fmt::format("needs a GPU for each of this host's {} ranks, found {}", ranks.local_size(), found);
    CONVOY_CUDA(cudaSetDevice(ranks.local_rank()));
    if (!stream_) stream_ = std::make_unique<kernels::CudaStream>();
    return {};
  }
  std::unique_ptr<comm::Collectives> collectives(const comm::Communicator& ranks) override {
    return comm::make_nccl_collectives(ranks, sums_);
  }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    const auto buffer = std::make_shared<kernels::DeviceBuffer>(bytes);
    return {buffer, buffer->data()};
  }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    stream_->synchronize();
    CONVOY_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    // cudaMemcpy from pageable memory may return before the last chunk has arrived.
    CONVOY_CUDA(cudaDeviceSynchronize());
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    stream_->synchronize();
    CONVOY_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  }
  comm::Stream stream() override { return stream_->view(); }
  std::function<void()> as_step(const std::function<void(comm::Stream)>& work) override {
    // Run once outside of a capture, because NCCL connects ranks in the first transfer.
    work(stream());
    stream_->synchronize();
    const auto graph = std::make_shared<kernels::CapturedGraph>(kernels::CapturedGraph::capture(work));
    return [this, graph] { graph->launch(stream_->get()); };
  }

 private:
  const std::string name_;
  const comm::Sums sums_;
  std::unique_ptr<kernels::CudaStream> stream_;
};

}  // namespace

const std::vector<Device*>& devices() {
  static HostDevice host;
  // Never deleted: at the end of the program the CUDA runtime may be gone already.
  static auto* const cuda = new CudaDevice("Nccl", comm::Sums::gradients);
  static auto* const small = new CudaDevice("NcclSmall", comm::Sums::small);
  static const std::vector<Device*> all{&host, cuda, small};
  return all;
}

}  // namespace convoy::test
