// A job on GPUs that meets a fault. gpu_job_fault_test.cpp starts it under mpirun.
// Usage: gpu_victim SCENARIO TIMEOUT_MS
// A step of the job is a captured graph: a kernel runs while gradient buckets are reduced. Then
// every rank sends to the next rank, and the ranks sum a loss. Both use other connections than the
// buckets.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "comm/buckets.h"
#include "comm/nccl/nccl_collectives.h"
#include "comm/placement/environment.h"
#include "kernels/device/cuda_runtime.h"

namespace {

using namespace convoy;

// There are 2^24 gradients (kElements) of 4 bytes. A bucket has 2^24 bytes (kBucket), so there are
// four buckets.
constexpr std::int64_t kBucket = std::int64_t{16} << 20, kElements = kBucket;
constexpr std::int64_t kTensorBytes = std::int64_t{1} << 20;

// A kernel that runs until the host clears the flag.
__global__ void hold(const volatile int* held) {
  while (*held != 0) {
  }
}

class Step {
 public:
  Step(const comm::Communicator& world, bool unprepared)
      : collectives_(comm::make_nccl_collectives(world)),
        others_(comm::make_nccl_collectives(world, comm::Sums::small)),
        held_(sizeof(int)),
        gradients_(
            memory_for(kElements * sizeof(float), collectives_->shared_memory(kElements * sizeof(float)))),
        tensors_(memory_for(2 * kTensorBytes, others_->transfer_memory(2 * kTensorBytes))),
        buckets_(*collectives_, reinterpret_cast<float*>(gradients_.get()), segments(), {kBucket, kBucket}) {
    set_held(0);
    const int next = (world.rank() + 1) % world.size(),
              last = (world.rank() + world.size() - 1) % world.size();
    while (unprepared) ::usleep(10'000);
    transfers_.push_back(
        others_->prepare_send(tensors_.get(), kTensorBytes, comm::DType::u8, next, "tensor"));
    transfers_.push_back(others_->prepare_receive(tensors_.get() + kTensorBytes, kTensorBytes,
                                                  comm::DType::u8, last, "tensor"));
    CONVOY_CUDA(cudaMemset(gradients_.get(), 0, kElements * sizeof(float)));
    move({});  // the first transfer opens the connection, which must not happen in a capture
    CONVOY_CUDA(cudaDeviceSynchronize());
    graph_ = kernels::CapturedGraph::capture([this](kernels::Stream stream) {
      start_buckets_of(0, stream);
      hold<<<1, 1, 0, stream.get()>>>(reinterpret_cast<const int*>(held_.data()));
      CONVOY_CUDA(cudaGetLastError());
      start_buckets_of(1, stream);
      buckets_.wait_all(stream);
      move(stream);
      others_->all_reduce(gradients_.get(), 1, comm::DType::f32, comm::ReduceOp::sum, stream, "loss");
    });
  }
  void launch() { graph_.launch(stream_.get()); }
  void finish() { stream_.synchronize(); }
  void set_held(int held) { *reinterpret_cast<volatile int*>(held_.data()) = held; }

 private:
  static std::shared_ptr<std::byte> memory_for(std::size_t bytes, std::shared_ptr<std::byte> shared) {
    if (shared) return shared;
    const auto own = std::make_shared<kernels::DeviceBuffer>(bytes);
    return {own, own->data()};
  }
  void move(kernels::Stream stream) {
    for (const auto& transfer : transfers_) transfer->start(stream);
    for (const auto& transfer : transfers_) transfer->wait(stream);
  }
  static std::vector<comm::BucketSegment> segments() {
    return {{0, kElements / 2}, {kElements / 2, kElements - kElements / 2}};
  }
  void start_buckets_of(int segment, kernels::Stream stream) {
    for (std::size_t bucket = 0; bucket < buckets_.buckets().size(); ++bucket)
      if (buckets_.buckets()[bucket].last_segment == segment)
        buckets_.start(static_cast<int>(bucket), stream);
  }

  std::unique_ptr<comm::Collectives> collectives_, others_;
  kernels::PinnedBuffer held_;
  std::shared_ptr<std::byte> gradients_, tensors_;
  kernels::CudaStream stream_;
  comm::GradientBuckets buckets_;
  std::vector<std::unique_ptr<comm::PreparedOperation>> transfers_;
  kernels::CapturedGraph graph_;
};

void train(comm::MpiEnvironment& environment, std::string_view scenario) {
  const comm::Communicator& world = environment.world();
  const bool victim = world.rank() == (scenario.ends_with("0") ? 0 : world.size() - 1);
  Step step(world, victim && scenario == "unprepared");
  for (int i = 0; i < 50; ++i) {
    environment.set_step(i);
    const bool now = victim && i == 30;
    if (now && scenario.starts_with("absent"))
      while (true) ::usleep(10'000);
    if (now && scenario.starts_with("stop")) std::raise(SIGSTOP);
    // Holds this rank's device before its last buckets, so that the other ranks wait in these.
    if (now &&
        (scenario.starts_with("stall") || scenario.starts_with("kill") || scenario.starts_with("throw")))
      step.set_held(1);
    step.launch();
    if (now) ::usleep(200'000);
    if (now && scenario.starts_with("kill")) std::raise(SIGKILL);
    if (now && scenario.starts_with("throw")) {
      // Lets the kernel end. The all-reduce after it waits for the other rank, which makes no more
      // steps.
      step.set_held(0);
      throw std::runtime_error(environment.identity() + ": data.h5: cannot read chunk 7");
    }
    if (scenario.starts_with("throw") && !victim && i == 29) {
      step.finish();
      while (true) ::usleep(10'000);
    }
    step.finish();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  try {
    comm::MpiEnvironment environment(std::chrono::milliseconds(std::atoi(argv[2])),
                                     comm::take_local_device());
    train(environment, argv[1]);
    if (environment.world().rank() == 0) std::printf("finished on %d ranks\n", environment.world().size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "convoy: %s\n", error.what());
    return 1;
  }
  return 0;
}
