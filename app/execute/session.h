// A session runs compiled steps on one rank. Its constructor reserves their memory and builds the
// programs, so that a step only runs a program. A session may run the same steps for many trainings
// at once, which are its members. Each member gets the same bits as if it ran alone.
//
// For each step: load() a batch or write the input, start() a program, and later finish_step(), in
// the order of the starts. The steps of different ranks exchange data, so all ranks of a session's
// groups start the same programs in the same order, and destroy their sessions in the same order.
// Only one thread at a time may use a session. Tools that time or trace steps find more in
// session_tools.h.
#pragma once

#include <cstdint>
#include <deque>
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
  // Lets the steps read the stored images of `owner`, which must outlive this session. Call it
  // before the first step if InputOptions::resident_images is 0.
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
  // Starts a step. `program` is one of programs(), or a copy of one with other lanes that lives as
  // long as the session:
  //   train       computes gradients, sums them over the ranks and updates the parameters.
  //   train_part  computes a part of a step's batch that is not the last part; train computes the
  //               last one. After load() of each part, set its number and share in control(), and
  //               add its offset in the batch to first_sample. Needs StepOptions::accumulate.
  //   evaluate    computes the metrics of the batch. It ignores label smoothing.
  // `stop_requested` adds this rank to StepMetrics::stop_requests. A device works asynchronously:
  // up to steps_ahead() + 1 steps may be started before finish_step() is called; more throw
  // std::logic_error.
  void start(const Program& program, bool stop_requested = false);
  // Waits for the oldest step in flight. Returns its metrics, one element per member, which are the
  // same on every rank. They are valid until the next call. Throws std::runtime_error if the device
  // failed, and std::logic_error if no step is in flight.
  std::span<const StepMetrics> finish_step();
  int steps_in_flight() const { return executor_->in_flight(); }
  // Returns how many steps to keep in flight so that a device never waits for the host. It is 0 on
  // a host, where start() itself computes the step.
  int steps_ahead() const { return executor_->steps_ahead(); }
  // Both are of the step that finish_step() returned last. The probabilities [samples of a full
  // batch, classes] are valid until the next start(), and empty unless
  // StepOptions::keep_probabilities is set. The other is how many milliseconds the step waited for
  // other ranks.
  std::span<const float> probabilities() const { return executor_->probabilities(); }
  double exposed_comm_ms() const { return executor_->exposed_comm_ms(); }

  // Tells that this member need not be computed any more.
  void retire(int member) { executor_->retire(member); }
  // On a GPU, makes every later step wait for the newest step that `before` has started, another
  // session of this rank. If `before` is null, steps wait for no other session.
  void start_after(const Session* before);

  // The parts of the session. The programs may get lanes before the first step.
  const CompiledSteps& steps() const { return steps_; }
  const ModelMemory& memory() const { return *memory_; }
  SessionTensors& tensors() const { return *tensors_; }
  StepPrograms& programs() { return programs_; }
  const StepPrograms& programs() const { return programs_; }

 private:
  friend class SessionTools;
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
