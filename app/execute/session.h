// A session runs compiled steps on one rank. Its constructor binds them to memory that it owns, so
// that a step only runs its program. It may run many trainings of the same steps at once, its
// members, each with the bits that it has alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/execute/executor.h"
#include "app/execute/model_memory.h"
#include "app/execute/program_builder.h"
#include "app/model/network.h"
#include "comm/collectives.h"
#include "data/loader/batch.h"

namespace convoy::app {

// A finished batch of Session::evaluate(), with a row for each entry of the batch.
struct EvaluatedBatch {
  std::vector<std::int64_t> samples;     // index in the image set; -1 in a row without an image
  std::vector<std::int32_t> labels;      // -1 if there is none
  std::span<const float> probabilities;  // [capacity, classes], during the visit
};

class Session {
 public:
  // Compiles the steps of a network whose input is this rank's batch, and fits them into
  // options.memory_limit by estimated times. `ranks` must outlive the session.
  Session(const Network& network, const StepOptions& options, comm::Collectives& ranks);
  // `steps` were compiled with `options`. If groups.stages is set, `steps` are this rank's stage of
  // a partitioned step. With several members there must be one rank. Collective over the ranks of
  // `groups`.
  Session(CompiledSteps steps, const StepOptions& options, const RankGroups& groups);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Connects the stages of a partitioned step before its first step, since connections cannot be
  // made while a GPU step is captured. Collective over the stages, after all of them have made
  // their session.
  void connect();

  const ModelMemory& memory() const { return *memory_; }
  const MemoryFit& memory_fit() const { return steps_.fit; }
  const RankGroups& groups() const { return groups_; }

  int members() const { return memory_->members(); }

  // The control values, labels and images with which the next step starts. Here and below they are
  // those of member 0 if no member is given.
  kernels::StepControl& control(int member = 0) { return executor_->control(member); }
  std::span<std::int32_t> labels(int member = 0) { return executor_->labels(member); }
  PersistentTensor images() const { return {"images", memory_->images_desc(), memory_->images()}; }

  // Makes `batch` the input of the next step of these members, or of all. Its capacity must be the
  // network's. A device may hold the batch until the step is finished. `first_resident`: index of
  // its image set's first image among the residents.
  void load(data::BatchLease batch, std::span<const int> members, std::int64_t first_resident = 0) {
    executor_->load(std::move(batch), members, first_resident * options_.input.stored.bytes());
  }
  void load(data::BatchLease batch, std::int64_t first_resident = 0) {
    load(std::move(batch), all_members_, first_resident);
  }
  // Steps need not compute this member any more. Its memory then has no meaning.
  void retire(int member) { executor_->retire(member); }
  void put_image(std::int64_t index, const std::uint8_t* pixels,
                 std::int64_t count);  // writes resident images, as stored

  // Run one step on the loaded batch. Every rank gets the same metrics. A train step updates the
  // parameters. A device works asynchronously: up to steps_ahead() + 1 steps may be started before
  // finish_step().
  void start_train_step(bool stop_requested = false) { start(programs_.train, stop_requested); }
  // Needs StepOptions::accumulate. Starts a part of a step's batch that is not the last.
  // start_train_step() takes the last part, sums the gradients over the ranks and updates the
  // parameters. control() holds the number and the share of the loaded part.
  void start_train_part() { start(programs_.train_part, false); }
  void start_evaluate_step() { start(programs_.evaluate, false); }
  std::span<const StepMetrics> finish_members() { return executor_->finish(); }
  StepMetrics finish_step() { return finish_members()[0]; }
  int steps_in_flight() const { return executor_->in_flight(); }
  int steps_ahead() const { return executor_->steps_ahead(); }
  StepMetrics train_step(bool stop_requested = false) {
    start_train_step(stop_requested);
    return finish_step();
  }
  // Returns the metrics of all batches in one pass over the source. `visit` is called for each
  // finished batch, in their order; it needs StepOptions::keep_probabilities.
  using VisitBatch = std::function<void(const EvaluatedBatch& batch)>;
  StepMetrics evaluate(data::BatchSource& source, std::int64_t first_resident = 0,
                       const VisitBatch& visit = nullptr);
  // Does so for all members, with a source for the members of each group. Returns the metrics by
  // member.
  struct MemberBatches {
    data::BatchSource* source = nullptr;
    std::vector<int> members;
  };
  std::vector<StepMetrics> evaluate_members(std::span<const MemberBatches> groups,
                                            std::int64_t first_resident = 0);
  // Milliseconds that the last finished step waited for other ranks.
  double exposed_comm_ms() const { return executor_->exposed_comm_ms(); }

  // Gives a member the first values of this network's parameters and statistics. The network has
  // those of the compiled one.
  void initialise(const Network& network, int member);

  // Copy a persistent tensor to or from row-major host memory. No step may be in flight.
  std::vector<float> read(const PersistentTensor& tensor, int member = 0) const;
  void write(const PersistentTensor& tensor, const std::vector<float>& row_major, int member = 0);
  // Replaces the running statistics by their mean over the replicas, since without synchronised
  // batch norm every rank has its own.
  void average_states();
  // Swaps parameters and statistics with their moving averages. Evaluations then test the averages,
  // and a second call restores the parameters. Does so for all members. No step may be in flight.
  void exchange_averages();

  // Traces train steps on a device (executor.h).
  void prepare_trace(int steps) { executor_->prepare_trace(programs_.train, steps); }
  void begin_trace() { executor_->begin_trace(); }
  std::vector<TracedStep> traced_steps() { return executor_->traced_steps(); }

  const Program& train_program() const { return programs_.train; }
  void instrument_training(const Program::Wrap& wrap) { programs_.train.instrument(wrap); }
  std::size_t finished_buckets() const {
    return communication_.buckets == nullptr ? 0
                                             : static_cast<std::size_t>(communication_.buckets->finished());
  }

 private:
  void reserve_memory();
  void make_executor();
  int most_waits() const;
  std::span<const float> probabilities_of_step() const;
  void initialise(const StepGraph& graph, int member);
  int lanes() const;
  void make_buckets();
  void start(const Program& program, bool stop_requested);

  const StepOptions options_;
  const RankGroups groups_;
  CompiledSteps steps_;
  std::unique_ptr<ModelMemory> memory_;
  std::vector<int> all_members_;
  StepCommunication communication_;
  StepPrograms programs_;
  kernels::Launch copy_parameters_;     // updates the bf16 copies; empty if there are none
  bool copies_are_stale_ = false;       // parameters have changed since copy_parameters_ ran
  std::unique_ptr<Executor> executor_;  // last member: steps in flight use all of the above
};

}  // namespace convoy::app
