#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <stdexcept>

#include "app/concurrency/glp4nn.h"
#include "app/concurrency/sample_streams.h"
#include "app/execute/session_tools.h"
#include "kernels/device/arena.h"
#include "kernels/device/cuda_runtime.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

constexpr int kMostStreams = 32;
constexpr double kLaunchMs = 3e-3;  // the time that the host takes to launch a kernel

bool is_convolution(const Node& node) {
  return node.is<Conv2dForward>() || node.is<Conv2dBackwardData>() || node.is<Conv2dBackwardWeights>();
}

class CudaSampleStreams final : public SampleStreams {
 public:
  CudaSampleStreams(Session& session, const CompiledGraph& train, const StepLoad& load)
      : session_(session), train_(train), batch_(session.memory().capacity()), streams_(kMostStreams) {
    // For each layer and name of operation: the nodes in reverse order, so that pop_back() removes
    // the first one.
    std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> nodes;
    for (std::size_t node = train.graph.nodes.size(); node-- > 0;)
      nodes[{train.graph.nodes[node].layer, std::string(train.graph.nodes[node].name())}].push_back(node);
    const auto& instructions = SessionTools(session).programs().train.instructions();
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      Work& work = work_.emplace_back();
      work.whole = instructions[i].launch;
      std::vector<std::size_t>& own = nodes[{instructions[i].layer, instructions[i].kind}];
      if (own.empty()) continue;
      if (is_convolution(train.graph.nodes[own.back()])) split(work, own.back(), load.ops[i].ms);
      own.pop_back();
    }
    scratch_ = kernels::Arena(kernels::Backend::cuda, kMostStreams * scratch_bytes_);
    for (Work& work : work_) {
      if (!work.kernel) continue;
      bind(work);
      ++convolutions_;
    }
  }

  double time(std::int64_t steps) override {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t step = 0; step < steps; ++step)
      for (const Work& work : work_) run(work);
    kernels::synchronize(kernels::Backend::cuda);
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
    return passed.count() / static_cast<double>(steps);
  }
  int streams() const override { return most_streams_; }
  int convolutions() const override { return convolutions_; }

 private:
  struct Work {
    kernels::Launch whole;
    std::optional<kernels::Kernel> kernel;  // computes one sample; nothing if the work is not split
    std::size_t node = 0;
    double sample_ms = 0;
    std::vector<kernels::Launch> samples;  // one launch per stream
  };

  cudaStream_t stream(int index) const { return streams_.compute(index).get(); }

  bool has_samples(TensorId id) const {
    const kernels::TensorDesc& desc = train_.descs[static_cast<std::size_t>(id)];
    return desc.shape.rank() == 4 && desc.shape[0] == batch_ && desc.layout != kernels::Layout::opaque &&
           train_.graph.tensors[static_cast<std::size_t>(id)].role != TensorRole::parameter &&
           train_.graph.tensors[static_cast<std::size_t>(id)].role != TensorRole::parameter_copy &&
           train_.graph.tensors[static_cast<std::size_t>(id)].role != TensorRole::gradient;
  }

  void split(Work& work, std::size_t index, double ms) {
    const Node& node = train_.graph.nodes[index];
    kernels::KernelRequest request;
    const auto one = [&](TensorId id) {
      kernels::TensorDesc desc = train_.descs[static_cast<std::size_t>(id)];
      if (!has_samples(id)) return desc;
      desc.shape = kernels::Shape{1, desc.shape[1], desc.shape[2], desc.shape[3]};
      return desc;
    };
    for (const TensorId id : node.inputs) request.inputs.push_back(one(id));
    for (const TensorId id : node.outputs) request.outputs.push_back(one(id));
    try {
      work.kernel = make_kernel(node.op, kernels::Backend::cuda, request);
    } catch (const std::exception&) {
      return;
    }
    work.node = index;
    scratch_bytes_ = std::max(scratch_bytes_, (work.kernel->workspace_bytes + 255) / 256 * 256);
    work.sample_ms = std::max(ms / static_cast<double>(batch_), kLaunchMs);
  }

  void bind(Work& work) {
    const Node& node = train_.graph.nodes[work.node];
    const ModelMemory& memory = session_.memory();
    const auto address = [&](TensorId id, std::int64_t sample) -> void* {
      auto* const data = static_cast<std::byte*>(memory.address(train_, id));
      const auto bytes = static_cast<std::int64_t>(train_.descs[static_cast<std::size_t>(id)].bytes());
      return has_samples(id) ? data + sample * (bytes / batch_) : data;
    };
    const auto bound = [&](std::int64_t sample, int stream) {
      std::vector<void*> inputs, outputs;
      for (const TensorId id : node.inputs) inputs.push_back(address(id, sample));
      for (const TensorId id : node.outputs) outputs.push_back(address(id, sample));
      void* const workspace = scratch_.data() + static_cast<std::size_t>(stream) * scratch_bytes_;
      return work.kernel->bind({inputs, outputs, workspace, memory.control()});
    };
    Program alone;
    alone.add({node.layer, std::string(node.name()), bound(0, 0)});
    const ResourceTable resources = track_resources(alone);
    std::vector<LayerKernel> kernels;
    for (const KernelUse& use : resources.kernels[0]) kernels.push_back({use, work.sample_ms});
    const int streams = std::min({glp4nn_streams(kernels, resources.device, kLaunchMs, Glp4nnLimits::all),
                                  kMostStreams, static_cast<int>(batch_)});
    most_streams_ = std::max(most_streams_, streams);
    for (int i = 0; i < streams; ++i) work.samples.push_back(bound(i * batch_ / streams, i));
  }

  void run(const Work& work) const {
    if (work.samples.empty()) return work.whole(kernels::Stream(stream(0)));
    const int streams = static_cast<int>(std::ssize(work.samples));
    begin_.record(stream(0));
    for (int i = 1; i < streams; ++i) begin_.make_wait(stream(i));
    for (std::int64_t sample = 0; sample < batch_; ++sample) {
      const auto i = static_cast<int>(sample % streams);
      work.samples[static_cast<std::size_t>(i)](kernels::Stream(stream(i)));
    }
    for (int i = 1; i < streams; ++i) {
      end_.record(stream(i));
      end_.make_wait(stream(0));
    }
  }

  const Session& session_;
  const CompiledGraph& train_;
  const std::int64_t batch_;
  const kernels::StreamPool streams_;
  const kernels::CudaEvent begin_, end_;
  std::vector<Work> work_;
  std::size_t scratch_bytes_ = 0;
  kernels::Arena scratch_;
  int most_streams_ = 1, convolutions_ = 0;
};

}  // namespace

std::unique_ptr<SampleStreams> make_sample_streams(Session& session, const CompiledGraph& train,
                                                   const StepLoad& load) {
  return std::make_unique<CudaSampleStreams>(session, train, load);
}

}  // namespace convoy::app
