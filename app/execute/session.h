// A session runs compiled steps on one rank. Its constructor binds the steps to memory that the
// session owns, so that running a step only runs a program. A session may run the same steps for
// many trainings at once, which are its members. Each member gets the same bits as if it ran alone.
#pragma once

#include <cstdint>
#include <deque>
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

// A finished batch of Session::evaluate(). Each vector has one element per row of the batch.
struct EvaluatedBatch {
  // Index of the image in the image set; -1 in a row without an image, as in a short last batch.
  std::vector<std::int64_t> samples;
  std::vector<std::int32_t> labels;  // -1 if the image has no label
  // [samples of a full batch, classes]. Valid only while Session::evaluate() calls its argument
  // `visit` with this batch.
  std::span<const float> probabilities;
};

class Session {
 public:
  // Compiles the steps of a network whose batch is this rank's part of the global batch. If the
  // steps need more memory than options.memory_limit, changes the training step to need less, at
  // the least expected time (fit_into_limit()). The times of the operations are estimates. `ranks`
  // must outlive the session.
  Session(const Network& network, const StepOptions& options, comm::Collectives& ranks);
  // `steps` must have been compiled with `options`. If groups.stages is set, `steps` are this
  // rank's stage of a partitioned step. With several members (trainings), groups.world must have
  // only one rank. Collective over the ranks of `groups`.
  Session(CompiledSteps steps, const StepOptions& options, const RankGroups& groups);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Connects the stages of a partitioned step. Call it after all stages have made their sessions.
  // Call it before the first step, since connections cannot be made while a GPU step is captured.
  // Collective over the stages.
  void connect();

  const ModelMemory& memory() const { return *memory_; }
  const MemoryFit& memory_fit() const { return steps_.fit; }
  const RankGroups& groups() const { return groups_; }

  int members() const { return memory_->members(); }

  // The control values, labels and images for the next step. Functions that are called without a
  // member use member 0.
  kernels::StepControl& control(int member = 0) { return executor_->control(member); }
  std::span<std::int32_t> labels(int member = 0) { return executor_->labels(member); }
  PersistentTensor images() const { return {"images", memory_->images_desc(), memory_->images()}; }

  // Makes `batch` the input of the next step of the given members, or of all members. The batch
  // must have as many rows as the network's batch (ModelMemory::capacity()). A device may hold the
  // batch until the step is finished. If the device stores all images, `first_resident` is the
  // index of the first image of the batch's split (training or test).
  void load(data::BatchLease batch, std::span<const int> members, std::int64_t first_resident = 0) {
    executor_->load(std::move(batch), members, images_at_ + first_resident * options_.input.stored.bytes());
  }
  void load(data::BatchLease batch, std::int64_t first_resident = 0) {
    load(std::move(batch), all_members_, first_resident);
  }
  // Tells the session that it need not compute this member any more. The values in the member's
  // memory become undefined.
  void retire(int member) { executor_->retire(member); }
  // Makes this session read the stored images of `owner` instead of images of its own. `owner` must
  // outlive this session. The options of this session must have one resident image, which is not
  // used.
  void read_images_of(const Session& owner);
  // Makes every later step of this session wait for the newest step that `before` has started. If
  // `before` is null, steps wait for no other session. Both sessions must use the same device.
  void start_after(Session* before) {
    executor_->start_after(before != nullptr ? before->executor_.get() : nullptr);
  }
  // Stores `count` images on the device, from number `index` on. `pixels` are as in the data set.
  void put_image(std::int64_t index, const std::uint8_t* pixels, std::int64_t count);

  // Starts a training step on the loaded batch, which updates the parameters. Every rank gets the
  // same metrics. A device works asynchronously: up to steps_ahead() + 1 steps may be started
  // before finish_step() is called.
  void start_train_step(bool stop_requested = false) { start(programs_.train, stop_requested); }
  // Starts a part of a step's batch that is not the last part. Needs StepOptions::accumulate. For
  // the last part call start_train_step(), which sums the gradients over the ranks and updates the
  // parameters. control() must hold the number of the loaded part and its share of the batch.
  void start_train_part() { start(programs_.train_part, false); }
  void start_evaluate_step() { start(programs_.evaluate, false); }
  std::span<const StepMetrics> finish_members() {
    const std::span<const StepMetrics> metrics = executor_->finish();
    if (options_.gate != nullptr) options_.gate->finished(in_flight_trains_.front());
    in_flight_trains_.pop_front();
    return metrics;
  }
  StepMetrics finish_step() { return finish_members()[0]; }
  int steps_in_flight() const { return executor_->in_flight(); }
  int steps_ahead() const { return executor_->steps_ahead(); }
  StepMetrics train_step(bool stop_requested = false) {
    start_train_step(stop_requested);
    return finish_step();
  }
  // Evaluates all batches of one pass over the source and returns the sums of their metrics.
  // `visit`, which needs StepOptions::keep_probabilities, is called for each finished batch in
  // order.
  using VisitBatch = std::function<void(const EvaluatedBatch& batch)>;
  StepMetrics evaluate(data::BatchSource& source, std::int64_t first_resident = 0,
                       const VisitBatch& visit = nullptr);
  // Returns the milliseconds that the last finished step waited for other ranks.
  double exposed_comm_ms() const { return executor_->exposed_comm_ms(); }
  // Returns the estimated time of evaluating a batch, divided by the time of a training step.
  // Requires a session that trains.
  double evaluated_batch_steps() const;
  // Returns the bytes of all persistent tensors of all members, which a checkpoint holds.
  std::int64_t checkpoint_bytes() const;

  // Initialises a member's parameters and statistics with the initial values of this network. The
  // network must have the same parameters and statistics as the compiled network.
  void initialise(const Network& network, int member);

  // Waits until the parameters, the optimizer state and the statistics are in device memory, and
  // keeps them there while the returned object lives. Hold this object while you read or write many
  // tensors: otherwise other sessions could move the memory to the host after each tensor.
  [[nodiscard]] Admission use_memory() const { return {options_.gate, DeviceGate::Use::memory}; }
  // Copy persistent tensors to or from row-major host memory. Require that no step is in flight.
  // read() of a list uses the device's memory only while it copies, not while it changes layouts.
  std::vector<float> read(const PersistentTensor& tensor, int member = 0) const;
  std::vector<std::vector<float>> read(std::span<const PersistentTensor* const> tensors,
                                       int member = 0) const;
  void write(const PersistentTensor& tensor, const std::vector<float>& row_major, int member = 0);
  // Replaces the running statistics by their mean over the replicas (RankGroups::replicas). Changes
  // nothing with synchronised batch norm, because all replicas then have the same statistics.
  void average_states();
  // Swaps parameters and statistics with their moving averages, for all members. Evaluations then
  // test the averages. A second call restores the parameters. Requires that no step is in flight.
  void exchange_averages();

  // Trace training steps on a device, as Executor's functions with these names do.
  void prepare_trace(int steps) { executor_->prepare_trace(programs_.train, steps); }
  void begin_trace() { executor_->begin_trace(); }
  std::vector<TracedStep> traced_steps() { return executor_->traced_steps(); }

  const Program& train_program() const { return programs_.train; }
  const Program& train_part_program() const { return programs_.train_part; }
  // Set the lanes of train_program() and of train_part_program(). Call them before the first step.
  void arrange_training(LaneOrder lanes) { programs_.train.arrange(std::move(lanes)); }
  void arrange_training_part(LaneOrder lanes) { programs_.train_part.arrange(std::move(lanes)); }
  // Returns the largest number of lanes for computing that a program of this session may have.
  int lanes() const;
  // Starts a training step that runs `program`. It must be a copy of one of this session's training
  // programs. Only its lanes may differ.
  void start_copy(const Program& program) { start(program, false); }

  // Fills the memory with the control values of a full batch and with numbers to compute with, so
  // that instructions can be timed one by one. Timing spoils parameters and states: call reset()
  // afterwards.
  void prepare_timing();
  // Brings all memory except the images back to its state after the constructor. Call it only if no
  // step has run.
  void reset();
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
  void make_buckets();
  void start(const Program& program, bool stop_requested);

  const StepOptions options_;
  const RankGroups groups_;
  CompiledSteps steps_;
  std::unique_ptr<ModelMemory> memory_;
  std::vector<int> all_members_;
  std::int64_t images_at_ = 0;  // bytes from this session's images to the images that it reads
  StepCommunication communication_;
  StepPrograms programs_;
  kernels::Launch copy_parameters_;  // makes the bf16 copies; empty if there are none
  // Whether parameters have changed since copy_parameters_ ran.
  bool copies_are_stale_ = false;
  std::deque<bool> in_flight_trains_;  // whether each step in flight trains, the oldest first
  // Declared last, so that it is destroyed first: steps in flight use all fields above.
  std::unique_ptr<Executor> executor_;
};

}  // namespace convoy::app
