// Runs each step on a GPU as one launch of a captured graph, or as several if other sessions use
// the GPU, too. A graph computes all members of the session (trainings that run together). Values
// that change from step to step go through a StepRing in host memory. A separate stream copies the
// images of the next batch to the GPU while the current step computes. The host may start the next
// two steps before it reads the metrics of a step.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

#include "app/execute/cuda_lanes.h"
#include "app/execute/cuda_program_clock.h"
#include "app/execute/cuda_step_traces.h"
#include "app/execute/executor.h"
#include "kernels/device/cuda_runtime.h"
#include "kernels/device/cuda_step_ring.h"
#include "kernels/device/sample_transform.h"

namespace convoy::app {
namespace {

using kernels::CapturedGraph;
using kernels::CudaEvent;
using kernels::StepRing;

constexpr std::size_t in_words(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(const ModelMemory& memory, const DeviceExecution& execution)
      : memory_(memory),
        streamed_(execution.streamed && memory.has_images()),
        batches_(execution.batches),
        lanes_(execution.lanes),
        fixed_lanes_(execution.fixed_lanes),
        gate_(execution.gate),
        precision_(execution.precision),
        priority_(gate_ != nullptr && gate_->urgent() ? kernels::CudaStream::Priority::high
                                                      : kernels::CudaStream::Priority::normal),
        part_(gate_ != nullptr ? gate_->multiprocessors() : nullptr),
        streams_(execution.lanes + kCopyLanes, priority_, part_),
        waits_(execution.lanes, execution.waits),
        inputs_(static_cast<std::size_t>(memory.members()), Input(memory)),
        metrics_(inputs_.size()),
        probabilities_(execution.probabilities),
        ring_(kRingSlots, fetched(memory), published(), {memory.members(), memory.stride()}),
        waited_(static_cast<std::size_t>(execution.waits)) {
    lane_resources_.part = part_;
  }

  // Waits for the steps in flight, because their memory is freed next. Ignores errors, since a
  // destructor cannot report them.
  ~CudaExecutor() override {
    for (const kernels::CudaStream* stream : {&streams_.compute(0), &streams_.to_device()})
      cudaStreamSynchronize(stream->get());
  }

  kernels::StepControl& control(int member) override { return input_of(member).control; }
  std::span<std::int32_t> labels(int member) override { return input_of(member).labels; }
  // Does nothing: the captured graph computes all members and cannot leave one out.
  void retire(int) override {}

  void load(data::BatchLease lease, std::span<const int> members, std::int64_t first_byte) override {
    const data::Batch& batch = *lease;
    const auto slot = static_cast<std::size_t>(started_ % kRingSlots);
    const std::int64_t base = streamed_ ? place_of_batch(slot) : first_byte;
    if (streamed_ && batch.cuts == nullptr)
      throw std::invalid_argument("the step reads stored pixels, but the batch has none");
    if (memory_.has_transforms() && batch.transforms == nullptr)
      throw std::invalid_argument("the step reads transforms, but the batch has none");
    for (const int member : members) {
      Input& input = input_of(member);
      if (memory_.has_labels()) std::copy_n(batch.labels, batch.capacity, input.labels.data());
      if (!input.transforms.empty()) std::copy_n(batch.transforms, batch.capacity, input.transforms.data());
      // A kernel of member m adds m strides to every address. But all members share the images, so
      // subtract these bytes here from the offsets of the samples.
      for (kernels::SampleTransform& transform : input.transforms)
        transform.offset += base - member * memory_.stride();
      input.mix = batch.mix;
      input.control.valid = batch.valid;
      input.control.global_valid = batch.global_valid;
      input.control.first_sample = static_cast<std::uint64_t>(batch.first);
    }
    if (!streamed_) return;
    const cudaStream_t copies = streams_.to_device().get();
    CONVOY_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(memory_.images()) + base, batch.cuts,
                                static_cast<std::size_t>(batch.cut_bytes), cudaMemcpyHostToDevice, copies));
    copied_[slot].record(copies);
    copied_[slot].make_wait(compute());
    // Keep the lease until the step is finished, because the copy may still read the batch.
    leases_[slot].push_back(std::move(lease));
  }

  void start_after(Executor* before) override {
    before_ = static_cast<CudaExecutor*>(before);
    if (before_ != nullptr) before_->is_followed_ = true;
  }

  void start(const Program& program, bool stop_requested) override {
    if (in_flight() > steps_ahead()) throw std::logic_error("too many steps in flight");
    const Captured& captured = next_capture(program);
    const double stop = stop_requested ? 1 : 0;
    for (int member = 0; member < memory_.members(); ++member) {
      const Input& input = input_of(member);
      const auto put = [&](int field, const void* from, std::size_t bytes) {
        if (bytes > 0) std::memcpy(ring_.input(started_, field, member), from, bytes);
      };
      put(0, &input.control, sizeof input.control);
      put(1, &stop, sizeof stop);
      put(2, input.labels.data(), input.labels.size() * sizeof(std::int32_t));
      put(kTransformsField, input.transforms.data(),
          input.transforms.size() * sizeof(kernels::SampleTransform));
      put(kMixField, &input.mix, memory_.has_mix() ? sizeof input.mix : 0);
    }
    if (before_ != nullptr) before_->done_.make_wait(compute());
    for (std::size_t i = 0; i < captured.pieces.size(); ++i) {
      const bool ends_part = i + 1 == captured.pieces.size();
      const DeviceGate::Piece piece{captured.pieces[i].milliseconds, ends_part && !program.goes_on(),
                                    &captured.pieces[i].first_used, ends_part};
      const Admission admitted(gate_, DeviceGate::Use::step, piece, streams_.compute(0).view());
      captured.pieces[i].graph.launch(compute());
    }
    if (is_followed_) done_.record(compute());
    waits_of_[static_cast<std::size_t>(started_ % kRingSlots)] = captured.waits;
    ++started_;
    loaded_ = 0;
  }

  StepResult finish() override {
    if (in_flight() == 0) throw std::logic_error("no step was started");
    wait_for(finished_);
    for (int member = 0; member < memory_.members(); ++member) {
      std::array<double, ModelMemory::kMetrics> sums;
      std::memcpy(sums.data(), ring_.output(finished_, 0, member), kMetricBytes);
      metrics_[static_cast<std::size_t>(member)] = step_metrics(sums.data());
    }
    const StepResult result{metrics_, probabilities_of(finished_), waited_ms(finished_)};
    leases_[static_cast<std::size_t>(finished_ % kRingSlots)].clear();
    ++finished_;
    return result;
  }
  int in_flight() const override { return static_cast<int>(started_ - finished_); }
  int steps_ahead() const override { return kRingSlots - 1; }

  void prepare_trace(const Program& program, int steps) override {
    traces_.emplace(program, lanes_, steps);
    for (int step = 0; step < steps; ++step) traced_.push_back(capture(program, &traces_->clock(step)));
  }
  void begin_trace() override { next_traced_ = 0; }
  std::vector<TracedStep> traced_steps() override {
    return traces_ ? traces_->read(streams_.to_host(), fixed_lanes_) : std::vector<TracedStep>();
  }

 private:
  // Indices in the list that fetched() returns.
  static constexpr int kTransformsField = 3, kMixField = 4;
  // Indices in the list that published() returns.
  static constexpr int kWaitsField = 1, kProbabilitiesField = 2;
  static constexpr std::size_t kMetricBytes = ModelMemory::kMetrics * sizeof(double);

  // The input values of a member's next step.
  struct Input {
    explicit Input(const ModelMemory& memory)
        : labels(memory.has_labels() ? static_cast<std::size_t>(memory.capacity()) : 0, -1),
          transforms(memory.has_transforms() ? static_cast<std::size_t>(memory.capacity()) : 0) {}
    kernels::StepControl control;
    kernels::MixParameters mix;
    std::vector<std::int32_t> labels;
    std::vector<kernels::SampleTransform> transforms;
  };

  struct Captured {
    struct Piece {
      CapturedGraph graph;
      double milliseconds = 0;  // estimated
      std::vector<MemoryRange> first_used;
    };
    std::vector<Piece> pieces;
    int waits = 0;  // the number of instructions that wait for other ranks
  };

  Input& input_of(int member) { return inputs_.at(static_cast<std::size_t>(member)); }

  // Returns where the pixels of the next batch go, as bytes from the start of the image memory.
  // This memory is a ring of kRingSlots slots. A slot serves one step and has room for `batches_`
  // batches.
  std::int64_t place_of_batch(std::size_t slot) {
    if (loaded_ == batches_) throw std::logic_error("a step takes more batches than there are places for");
    const std::int64_t place = static_cast<std::int64_t>(slot) * batches_ + loaded_++;
    return place * static_cast<std::int64_t>(memory_.images_desc().bytes() / kRingSlots);
  }

  static std::vector<StepRing::Field> fetched(const ModelMemory& memory) {
    const auto samples = static_cast<std::size_t>(memory.capacity());
    std::vector<StepRing::Field> fields{
        {memory.control(), sizeof(kernels::StepControl)},
        {memory.metrics() + 4, sizeof(double)},
        {memory.labels(), memory.has_labels() ? in_words(samples * sizeof(std::int32_t)) : 0}};
    fields.push_back({memory.has_transforms() ? memory.transforms() : nullptr,
                      memory.has_transforms() ? samples * sizeof(kernels::SampleTransform) : 0});
    fields.push_back({memory.has_mix() ? memory.mix() : nullptr,
                      memory.has_mix() ? in_words(sizeof(kernels::MixParameters)) : 0});
    return fields;
  }

  std::vector<StepRing::Field> published() const {
    return {{memory_.metrics(), kMetricBytes},
            {waits_.stamps().data(), waits_.stamps().bytes()},
            {const_cast<float*>(probabilities_.data()), in_words(probabilities_.size_bytes())}};
  }

  cudaStream_t compute() const { return streams_.compute(0).get(); }

  const Captured& captured_of(const Program& program) {
    const auto found = graphs_.find(&program);
    if (found != graphs_.end()) return found->second;
    return graphs_.emplace(&program, capture(program, nullptr)).first->second;
  }
  const Captured& next_capture(const Program& program) {
    const bool traced = next_traced_ < traced_.size() && &program == &traces_->program();
    return traced ? traced_[next_traced_++] : captured_of(program);
  }
  Captured capture(const Program& program, ProgramClock* clock) {
    Captured captured;
    const LanePlan plan = plan_lanes(program, fixed_lanes_);
    const double longest_ms = gate_ != nullptr && clock == nullptr ? gate_->longest_piece_ms() : 0;
    const std::vector<StepPiece> pieces = divide_step(program, plan, precision_, longest_ms);
    std::vector<std::vector<MemoryRange>> uses = first_uses(program, plan, pieces, memory_.state());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto record_piece = [&](kernels::Stream stream) {
        if (i == 0) ring_.fetch(stream);
        captured.waits += record(program, plan, pieces[i], stream, clock);
        if (i + 1 < pieces.size()) return;
        // publish() marks the step as finished, so all work of the capture must end before it.
        CapturedGraph::join(stream.get());
        ring_.publish(stream);
      };
      captured.pieces.push_back({CapturedGraph::capture(record_piece, priority_, part_),
                                 pieces[i].milliseconds, std::move(uses[i])});
    }
    return captured;
  }

  // Records a piece of the program on `stream` (lane 0) and on the streams of the other lanes.
  // Returns the number of instructions that wait for other ranks, which the clock `waits_` times.
  // If the clock `all` is not null, it times every instruction.
  int record(const Program& program, const LanePlan& plan, const StepPiece& piece, kernels::Stream stream,
             ProgramClock* all);
  void launch(const Instruction& instruction, kernels::Stream stream) const;
  void wait_for(std::int64_t number) const;
  double waited_ms(std::int64_t number);
  // Returns the probabilities of a finished step, in host memory.
  std::span<const float> probabilities_of(std::int64_t number) const {
    if (probabilities_.empty()) return {};
    const std::byte* values = ring_.output(number, kProbabilitiesField);
    return {reinterpret_cast<const float*>(values), probabilities_.size()};
  }

  const ModelMemory& memory_;
  const bool streamed_;
  const int batches_;
  const int lanes_, fixed_lanes_;
  DeviceGate* const gate_;
  const Precision precision_;
  const kernels::CudaStream::Priority priority_;
  const kernels::MultiprocessorPart* const part_;  // null: all multiprocessors
  kernels::StreamPool streams_;
  ProgramClock waits_;
  std::vector<Input> inputs_;  // the input of each member's next step
  std::vector<StepMetrics> metrics_;
  std::span<const float> probabilities_;  // the probabilities in device memory
  StepRing ring_;
  std::map<const Program*, Captured> graphs_;
  // The events and streams that graph captures use. They must live until the captures have ended.
  LaneResources lane_resources_;
  CudaExecutor* before_ = nullptr;  // set by start_after(): the executor whose steps come first
  bool is_followed_ = false;        // whether another executor waits for steps of this one
  CudaEvent done_;                  // the end of the newest step; recorded only if is_followed_
  std::array<CudaEvent, kRingSlots> copied_;
  std::array<std::vector<data::BatchLease>, kRingSlots> leases_;
  int loaded_ = 0;  // the number of batches loaded for the next step
  std::int64_t started_ = 0, finished_ = 0;
  // For each slot of the ring: the number of instructions that wait for other ranks in its step.
  std::array<int, kRingSlots> waits_of_{};
  std::vector<Interval> waited_;
  std::optional<StepTraces> traces_;
  std::vector<Captured> traced_;
  std::size_t next_traced_ = std::numeric_limits<std::size_t>::max();
};

void CudaExecutor::launch(const Instruction& instruction, kernels::Stream stream) const {
  try {
    instruction.launch(stream);
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("layer {}, {} on cuda: {}", instruction.layer, instruction.kind, error.what()));
  }
}

int CudaExecutor::record(const Program& program, const LanePlan& plan, const StepPiece& piece,
                         kernels::Stream stream, ProgramClock* all) {
  int waits = 0;
  const auto launch_one = [&](int index, int lane, cudaStream_t of_lane) {
    const Instruction& instruction = program.instructions()[static_cast<std::size_t>(index)];
    const bool communicates = instruction.communicates && !waited_.empty();
    if (communicates) waits_.begin(waits, lane, of_lane);
    if (all != nullptr) all->begin(index, lane, of_lane);
    // Time stamps need not come before a background instruction: they have a higher priority.
    if (instruction.fills && !instruction.background) {
      waits_.join(of_lane);
      if (all != nullptr) all->join(of_lane);
    }
    launch(instruction, kernels::Stream(of_lane));
    if (communicates) waits_.end(waits++, lane, of_lane);
    if (all != nullptr && instruction.follow)
      all->end_after(index, instruction.follow);
    else if (all != nullptr)
      all->end(index, lane, of_lane);
  };
  record_lanes(plan, piece, stream.get(), streams_, lane_resources_, launch_one);
  waits_.join(stream.get());
  if (all != nullptr) all->join(stream.get());
  return waits;
}

// Returns the milliseconds in which at least one lane waited for other ranks. This is an upper
// bound of the lost time, because another lane may compute meanwhile.
double CudaExecutor::waited_ms(std::int64_t number) {
  const auto waits = static_cast<std::size_t>(waits_of_[static_cast<std::size_t>(number % kRingSlots)]);
  if (waits == 0) return 0;
  std::memcpy(waited_.data(), ring_.output(number, kWaitsField), waits * sizeof waited_[0]);
  return covered_ms(std::span(waited_).first(waits));
}

// Waits until the step is finished. Polls a flag in host memory, since calls to the CUDA runtime
// would delay other threads. Only asks the runtime every 200 ms whether the device failed.
void CudaExecutor::wait_for(std::int64_t number) const {
  using Clock = std::chrono::steady_clock;
  auto ask_again = Clock::now() + std::chrono::milliseconds(200);
  while (!ring_.finished(number)) {
    std::this_thread::yield();
    if (Clock::now() < ask_again) continue;
    ask_again = Clock::now() + std::chrono::milliseconds(200);
    const cudaError_t status = cudaStreamQuery(compute());
    if (status == cudaErrorNotReady || ring_.finished(number)) continue;
    if (status == cudaSuccess)
      throw std::logic_error("internal error: the stream is idle but the step has not published its metrics");
    throw std::runtime_error(fmt::format("the device failed in a kernel of the step: {} ({})",
                                         cudaGetErrorName(status), cudaGetErrorString(status)));
  }
}

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const ModelMemory& memory, const DeviceExecution& execution) {
  return std::make_unique<CudaExecutor>(memory, execution);
}

}  // namespace convoy::app
