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
#include "app/execute/session_tensors.h"
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

  // These return the parts of the session. The programs may get lanes before the first step.
  const StepOptions& options() const { return options_; }
  const RankGroups& groups() const { return groups_; }
  const CompiledSteps& steps() const { return steps_; }
  const ModelMemory& memory() const { return *memory_; }
  SessionTensors& tensors() const { return *tensors_; }
  const StepCommunication& communication() const { return communication_; }
  StepPrograms& programs() { return programs_; }
  const StepPrograms& programs() const { return programs_; }
  Executor& executor() const { return *executor_; }

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
  // Makes this session read the stored images of `owner` instead of images of its own. `owner` must
  // outlive this session. The options of this session must have one resident image, which is not
  // used.
  void read_images_of(const Session& owner);
  // Starts a training step on the loaded batch, which updates the parameters. Every rank gets the
  // same metrics. A device works asynchronously: up to steps_ahead() + 1 steps may be started
  // before finish_step() is called.
  void start_train_step(bool stop_requested = false) { start(programs_.train, stop_requested); }
  // Starts a part of a step's batch that is not the last part. Needs StepOptions::accumulate. For
  // the last part call start_train_step(), which sums the gradients over the ranks and updates the
  // parameters. control() must hold the number of the loaded part and its share of the batch.
  void start_train_part() { start(programs_.train_part, false); }
  void start_evaluate_step() { start(programs_.evaluate, false); }
  // Starts a step that runs `program`: one of programs(), or a copy of a training program that
  // differs only in its lanes.
  void start(const Program& program, bool stop_requested = false);
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

 private:
  void reserve_memory();
  void make_executor();
  int most_waits() const;
  std::span<const float> probabilities_of_step() const;
  void make_buckets();

  const StepOptions options_;
  const RankGroups groups_;
  CompiledSteps steps_;
  std::unique_ptr<ModelMemory> memory_;
  std::vector<int> all_members_;
  std::int64_t images_at_ = 0;  // bytes from this session's images to the images that it reads
  StepCommunication communication_;
  StepPrograms programs_;
  std::unique_ptr<SessionTensors> tensors_;
  std::deque<bool> in_flight_trains_;  // whether each step in flight trains, the oldest first
  // Declared last, so that it is destroyed first: steps in flight use all fields above.
  std::unique_ptr<Executor> executor_;
};

}  // namespace convoy::app
