// A session runs compiled steps on one rank. Its constructor reserves their memory and builds the
// programs, so that a step only runs a program. A session may run the same steps for many trainings
// at once, which are its members. Each member gets the same bits as if it ran alone.
//
// For each step: load() a batch or write the input, start it, and later finish_step(), in the order
// of the starts. The steps of different ranks exchange data, so all ranks of a session's groups
// start the same steps in the same order, and destroy their sessions in the same order.
// Only one thread at a time may use a session. Tools that time or trace steps find more in
// session_tools.h.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/execute/executor.h"
#include "app/execute/model_memory.h"
#include "app/execute/program_builder.h"
#include "app/execute/session_tensors.h"
#include "app/execute/step_result.h"
#include "data/loader/batch.h"

namespace convoy::app {

class Session {
 public:
  // `steps` must have been compiled with `options`. If groups.stages is set, `steps` are this
  // rank's stage of a partitioned step. With several members, groups.world must have only one rank.
  // The groups must outlive the session. Collective over the ranks of `groups`. Throws
  // std::invalid_argument if options exclude each other or the groups, and std::runtime_error
  // (kernels::OutOfMemory is one) if memory does not suffice.
  Session(CompiledSteps steps, const StepOptions& options, const RankGroups& groups);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Connects the stages of a partitioned step. They call this after all of them have constructed
  // their sessions and before the first step. Collective over the stages. Does nothing if the step
  // is not partitioned.
  void connect_stages();
  // Lets the steps read the stored images of `owner`, which must outlive this session. If the input
  // is resident and InputOptions::resident_images is 0, load() throws std::logic_error before this
  // call.
  void read_images_of(const Session& owner);

  int members() const { return memory_->members(); }

  // The input of a member's next step: control values, labels with one element per row of the
  // batch, and images. Values stay until they are changed. Of the control values, the constructor
  // sets seed and hyperparameters, load() sets valid, global_valid and first_sample, and the caller
  // sets step and learning_rate. load() also sets labels, images and how samples are mixed. The
  // caller may write images() only with InputOptions::Kind::filled.
  kernels::StepControl& control(int member = 0) { return executor_->control(member); }
  std::span<std::int32_t> labels(int member = 0) { return executor_->labels(member); }
  PersistentTensor images() const { return {"images", memory_->images_desc(), memory_->images()}; }

  // Makes `batch` the input of the next step of the given members; of all members if `members` is
  // empty. A step takes at most InputOptions::batches different batches. A batch has as many rows
  // as the network's batch (ModelMemory::capacity()). A device may hold it until the step is
  // finished. If the device stores all images, `first_image` is the index of the first image of the
  // batch's split (training or test).
  void load(data::BatchLease batch, std::int64_t first_image = 0, std::span<const int> members = {});
  // Start a step. A device works asynchronously: up to steps_ahead() + 1 steps may be started
  // before finish_step() is called; more throw std::logic_error. `stop_requested` adds this rank to
  // StepMetrics::stop_requests.
  //
  // start_train() computes gradients, sums them over the ranks and updates the parameters.
  // start_evaluation() computes the metrics of the batch, without label smoothing. A step may take
  // its batch in parts if StepOptions::accumulate is set: start_train_part() computes a part that
  // is not the last one, and start_train() the last one. After load() of each part, set its number
  // and share in control(), and add its offset in the batch to first_sample.
  void start_train(bool stop_requested = false) { start(programs_.train, stop_requested); }
  void start_train_part() { start(programs_.train_part, false); }
  void start_evaluation() { start(programs_.evaluate, false); }
  // Waits for the oldest step in flight and returns its results. Throws std::runtime_error if the
  // device failed, and std::logic_error if no step is in flight.
  StepResult finish_step();
  int steps_in_flight() const { return executor_->in_flight(); }
  // Returns how many steps to keep in flight so that a device never waits for the host. It is 0 on
  // a host, where start() itself computes the step.
  int steps_ahead() const { return executor_->steps_ahead(); }

  // Tells that this member need not be computed any more. Its metrics have no meaning from then on.
  void retire(int member) { executor_->retire(member); }
  // On a GPU, makes every later step wait for the newest step that `before` has started. `before`
  // is another session of this rank, which must outlive this one. If it is null, steps wait for no
  // other session.
  void start_after(const Session* before);

  // The parts of the session. The programs may get lanes before the first step.
  const CompiledSteps& steps() const { return steps_; }
  const ModelMemory& memory() const { return *memory_; }
  SessionTensors& tensors() const { return *tensors_; }
  StepPrograms& programs() { return programs_; }
  const StepPrograms& programs() const { return programs_; }

 private:
  friend class SessionTools;
  void start(const Program& program, bool stop_requested);
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
  // Bytes from this session's images to the images that it reads; no value until they are known.
  std::optional<std::int64_t> images_at_;
  StepCommunication communication_;
  StepPrograms programs_;
  std::unique_ptr<SessionTensors> tensors_;
  std::deque<bool> in_flight_trains_;  // whether each step in flight trains, the oldest first
  // Declared last, so that it is destroyed first: steps in flight use all fields above.
  std::unique_ptr<Executor> executor_;
};

}  // namespace convoy::app
