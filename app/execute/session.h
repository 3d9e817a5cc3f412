// One rank's run of one network: its memory, and the compiled programs for a training step and an evaluation step.
// Everything is decided by the constructor; a step then only runs its program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/execute/executor.h"
#include "app/execute/lane_plan.h"
#include "app/execute/model_memory.h"
#include "app/execute/program.h"
#include "app/execute/transfers.h"
#include "app/graph/passes/device_input.h"
#include "app/graph/passes/precision.h"
#include "app/model/network.h"
#include "comm/buckets.h"
#include "comm/collectives.h"
#include "data/loader/batch.h"

namespace convoy::app {

// The source of a CUDA session's images. Host sessions take float images, row_major, and nothing
// else.
struct InputOptions {
  enum class Kind : std::uint8_t {
    filled,    // the caller writes images()
    streamed,  // each batch brings the stored pixels that it needs (data::BatchOutput::cuts)
    resident  // put_image() has put all stored images there; batches say which (data::BatchOutput::transforms)
  };
  Kind kind = Kind::filled;
  std::vector<float> mean, std;  // one a channel, on the scale 0..1
  std::int64_t batch_bytes = 0;  // streamed: room for the pixels of one batch
  data::ImageShape stored;       // resident: of every image; streamed: its channels alone count
  std::int64_t resident_images = 0;
  int most_image_ops = 0;  // that the transform of a training sample may hold
};

struct SessionOptions {
  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  InputOptions input;
  bool training = true;  // false: no gradients, no optimizer; evaluation only
  bool synchronised_batch_norm = true;
  float label_smoothing = 0;
  bool mixing = false;                  // training mixes samples as the MixParameters in memory say
  kernels::OptimizerProblem optimizer;  // its segments are filled in here
  bool accumulate = false;              // a step's batch may come in parts; not with a placement
  double clip_gradient_norm = 0;        // largest Euclidean norm of all gradients together; 0: off
  // CUDA: choices of kernels (kernels/device/tuning.h); empty: none. One rank measures what the file does not hold;
  // several take what it holds, so that all run the same kernels.
  std::string tuning_file = {};
  std::int64_t memory_limit = 0;  // bytes of the arena; 0: none
  std::uint64_t seed = 1;
  // CUDA: instructions that may run side by side; the bits are the same for any number.
  int lanes = kDefaultLanes;
  bool time_waits = true;  // CUDA: measure exposed_comm_ms
};

// A run's ranks are replica after replica, each of as many ranks as its step has parts.
struct RankGroups {
  comm::Collectives* world = nullptr;     // all of them
  comm::Collectives* replicas = nullptr;  // those with this rank's part: batches, gradients, statistics
  comm::Collectives* parts = nullptr;     // those of this rank's replica, by part; null without partition
};

// The graph that a session with these options runs, of a network whose passes are fused.
StepGraph session_graph(const Network& fused, const SessionOptions& options, int replicas, bool training);
// Both steps of it. `control` must outlive the kernels.
CompiledSteps compile_session(const Network& network, const SessionOptions& options, int replicas,
                              const kernels::StepControl* control);

// The same with the choices of kernels of options.tuning_file, which one rank alone measures and several read.
CompiledSteps compile_tuned_session(const Network& network, const SessionOptions& options,
                                    const RankGroups& groups, const kernels::StepControl* control);
// How long places in a part's arena reuse_delay: a limit, which parts are made to fit, leaves no room for it.
int stage_reuse_delay(const SessionOptions& options);

struct UpdateKernels;

class Session {
 public:
  // The network's input is this rank's batch. `ranks` must outlive the session.
  Session(const Network& network, const SessionOptions& options, comm::Collectives& ranks)
      : Session(network, options, RankGroups{&ranks, &ranks, nullptr}, nullptr) {}
  // The network's input is this replica's batch; the session runs this rank's part of the placed step. Null: all
  // of it.
  Session(const Network& network, const SessionOptions& options, const RankGroups& groups,
          const StepPlacement* placement);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Before the first step of a part: a device's transfers cannot be connected while a step is captured. Collective over the
  // parts, all of which have a session by then.
  void connect();

  const ModelMemory& memory() const { return *memory_; }
  const RankGroups& groups() const { return groups_; }

  // What the next step starts with, beside its images.
  kernels::StepControl& control() { return executor_->control(); }
  std::span<std::int32_t> labels() { return executor_->labels(); }
  PersistentTensor images() const { return {"images", memory_->images_desc(), memory_->images()}; }

  // Makes a batch the next step's; its capacity must be the network's. A device may hold it until the step is finished.
  // `first_resident`: where the batch's image set starts among the resident images.
  void load(data::BatchLease batch, std::int64_t first_resident = 0) {
    executor_->load(std::move(batch), first_resident * options_.input.stored.bytes());
  }
  void put_image(std::int64_t index, const std::uint8_t* pixels, std::int64_t count);  // resident, as stored

  // Steps over the loaded batches. Every rank gets the same metrics. A train step updates the parameters. A device works
  // behind the caller's back: up to steps_ahead() + 1 steps may be started before the oldest is finished.
  void start_train_step(bool stop_requested = false) { start(train_program_, stop_requested); }
  // With SessionOptions::accumulate: all parts of a step but the last, which start_train_step()
  // takes, sums the gradients over them and updates. control() has the number and the share of the
  // part that is loaded.
  void start_train_part() { start(part_program_, false); }
  void start_evaluate_step() { start(evaluate_program_, false); }
  StepMetrics finish_step() { return executor_->finish(); }
  int steps_under_way() const { return executor_->under_way(); }
  int steps_ahead() const { return executor_->steps_ahead(); }
  StepMetrics train_step(bool stop_requested = false) {
    start_train_step(stop_requested);
    return finish_step();
  }
  // All batches of one pass over the source.
  StepMetrics evaluate(data::BatchSource& source, std::int64_t first_resident = 0);
  double exposed_comm_ms() const {
    return executor_->exposed_comm_ms();
  }  // in the step that was finished last
  std::vector<double> time_train_program(int repeats) { return executor_->time(train_program_, repeats); }

  // Row-major copies of a persistent tensor. No step may be under way.
  std::vector<float> read(const PersistentTensor& tensor) const;
  void write(const PersistentTensor& tensor, const std::vector<float>& row_major);
  // Without synchronised batch norm every rank has running statistics of its own: replaces them by their mean.
  void average_states();
  // Swaps parameters and statistics with their moving averages: evaluations then test the averages,
  // and a second call brings everything back. No step may be under way.
  void exchange_averages();

  // Of a device's train steps (executor.h).
  void prepare_trace(int steps) { executor_->prepare_trace(train_program_, steps); }
  void begin_trace() { executor_->begin_trace(); }
  std::vector<TracedStep> traced_steps() { return executor_->traced_steps(); }

  const Program& train_program() const { return train_program_; }
  void instrument_training(const Program::Wrap& wrap) { train_program_.instrument(wrap); }
  std::size_t finished_buckets() const {
    return buckets_ == nullptr ? 0 : static_cast<std::size_t>(buckets_->finished());
  }
  const Program& evaluate_program() const { return evaluate_program_; }

 private:
  void fit_into_limit(const Network& network, const FlatLayout& flat, const MemoryRequest& request);
  void make_executor();
  int most_waits() const;
  void initialise(const StepGraph& graph);
  void refresh_copies();
  void start(const Program& program, bool stop_requested);
  void make_buckets();
  Program bind(const CompiledGraph& compiled, bool last_part);
  void append_node(Program& program, const CompiledGraph& compiled, std::size_t node);
  void append_accumulation(Program& program, const MemoryRange& slice, bool last_part);
  void append_statistics_average(Program& program);
  void append_finished_buckets(Program& program, const CompiledGraph& compiled, std::size_t node);
  void append_update(Program& program, const UpdateKernels& kernels);
  void append_transfer(Program& program, const CompiledGraph& compiled, const Node& node);
  void append_early_metrics(Program& program, const CompiledGraph& compiled, std::size_t node);
  void append_metrics(Program& program);
  void append_no_update(Program& program);
  void append_no_loss(Program& program);
  void append_clipping(Program& program, const UpdateKernels& kernels);
  void append_all_reduce(Program& program, comm::Collectives& ranks, const std::string& layer, double* data,
                         std::int64_t count);
  void append_communication(Program& program, Instruction instruction,
                            std::function<void(kernels::Stream)> action);
  float* gradient_scale() const;
  MemoryRange flat(const void* buffer, std::int64_t element_bytes = sizeof(float)) const {
    return {buffer, memory_->flat_elements() * element_bytes};
  }

  MemoryRange metrics_range() const {
    return {memory_->metrics(), ModelMemory::kMetrics * std::int64_t{sizeof(double)}};
  }

  const SessionOptions options_;
  const RankGroups groups_;
  comm::Collectives& ranks_;       // the replicas
  kernels::Arena control_memory_;  // one StepControl, where the kernels read it
  kernels::StepControl* control_;
  std::optional<CompiledGraph> train_;
  CompiledGraph evaluate_;
  std::unique_ptr<ModelMemory> memory_;
  std::unique_ptr<comm::GradientBuckets> buckets_;
  std::vector<std::unique_ptr<comm::PreparedOperation>>
      all_reduces_;                                         // of statistics, and at last of the metrics
  std::unique_ptr<comm::PreparedOperation> early_metrics_;  // of training steps; null where they come last
  std::unique_ptr<Transfers> transfers_;                    // null without partition
  Program train_program_, part_program_, evaluate_program_;
  bool copies_are_stale_ = false;       // the parameters were written, their bf16 copies not yet
  double exposed_ms_ = 0;               // waited for other ranks, counting up
  std::unique_ptr<Executor> executor_;  // last: what is under way uses all of the above
};

}  // namespace convoy::app
