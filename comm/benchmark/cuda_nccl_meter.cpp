// Measures collectives on device memory (measure.h). One CUDA graph contains many repetitions of an
// operation of Convoy or of NCCL. CUDA events measure how long a launch of this graph takes.
#include <fmt/format.h>

#include "comm/benchmark/meter.h"
#include "comm/nccl/nccl_channel.h"
#include "comm/nccl/nccl_collectives.h"

namespace convoy::comm {
namespace {

class NcclMeter : public MeterBase {
 public:
  NcclMeter(const Communicator& ranks, std::int64_t most_bytes)
      : MeterBase(ranks, make_nccl_collectives(ranks)),
        buffer_(static_cast<std::size_t>(most_bytes)),
        received_(static_cast<std::size_t>(most_bytes)) {}

  ~NcclMeter() override { forget_sums(); }

  void connect() override {
    plain_ = connect_all(ranks_, "bench");
    shared_ = collectives_->shared_memory(buffer_.bytes());
  }

  std::string library() const override {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "ncclGetVersion");
    return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

 protected:
  float* buffer() override { return reinterpret_cast<float*>(buffer_.data()); }
  float* received() override { return reinterpret_cast<float*>(received_.data()); }
  float* gradients() override { return shared_ ? reinterpret_cast<float*>(shared_.get()) : buffer(); }
  void copy_in(float* to, const std::vector<float>& from) override {
    CONVOY_CUDA(cudaDeviceSynchronize());
    CONVOY_CUDA(cudaMemcpy(to, from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice));
  }
  void copy_out(std::vector<float>& to, const float* from) override {
    CONVOY_CUDA(cudaDeviceSynchronize());
    CONVOY_CUDA(cudaMemcpy(to.data(), from, to.size() * sizeof(float), cudaMemcpyDeviceToHost));
  }

  void call_library(Movement movement, std::int64_t count, Stream stream) override {
    const auto n = static_cast<std::size_t>(count);
    const auto own = stream.get();
    const int ranks = ranks_.size(), rank = ranks_.rank();
    ncclComm_t handle = plain_.get();
    switch (movement) {
      case Movement::all_reduce:
      case Movement::gradients:
        return check_nccl(
            ncclAllReduce(data_of(movement), data_of(movement), n, ncclFloat32, ncclSum, handle, own),
            "ncclAllReduce", handle);
      case Movement::broadcast:
        return check_nccl(ncclBroadcast(buffer(), buffer(), n, ncclFloat32, 0, handle, own), "ncclBroadcast",
                          handle);
      case Movement::send_receive:
        check_nccl(ncclGroupStart(), "ncclGroupStart");
        check_nccl(ncclSend(buffer(), n, ncclFloat32, (rank + 1) % ranks, handle, own), "ncclSend", handle);
        check_nccl(ncclRecv(received(), n, ncclFloat32, (rank + ranks - 1) % ranks, handle, own), "ncclRecv",
                   handle);
        check_nccl(ncclGroupEnd(), "ncclGroupEnd", handle);
    }
  }

  double time(int times, const std::function<void(Stream)>& body) override {
    const auto graph = kernels::CapturedGraph::capture([&](Stream stream) {
      for (int i = 0; i < times; ++i) body(stream);
    });
    graph.launch(stream_.get());  // the first launch uploads the graph
    stream_.synchronize();
    ranks_.barrier("bench");
    begin_.record(stream_.get());
    graph.launch(stream_.get());
    end_.record(stream_.get());
    stream_.synchronize();
    return CudaEvent::microseconds(begin_, end_) / times;
  }

 private:
  kernels::DeviceBuffer buffer_, received_;
  std::shared_ptr<std::byte> shared_;
  NcclComm plain_;
  kernels::CudaStream stream_;
  CudaEvent begin_{CudaEvent::Timing::on}, end_{CudaEvent::Timing::on};
};

}  // namespace

std::unique_ptr<CollectivesMeter> make_nccl_meter(const Communicator& ranks, std::int64_t most_bytes) {
  return std::make_unique<NcclMeter>(ranks, most_bytes);
}

}  // namespace convoy::comm
