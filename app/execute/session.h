// A session runs compiled steps on one rank. Its constructor reserves their memory and builds the
// programs, so that a step only runs a program. A session may run the same steps for many trainings
// at once, which are its members. Each member gets the same bits as if it ran alone.
//
// For each step: set its input(), start it, and later finish_step(), in the order of the starts. The
// steps of different ranks exchange data, so all ranks of a session's groups start the same steps in
// the same order, and destroy their sessions in the same order. Only one thread at a time may use a
// session. Tools that time or trace steps find more in session_tools.h.
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
#include "app/execute/step_input.h"
#include "app/execute/step_result.h"

namespace convoy::app {

enum class StepKind : std::uint8_t {
  train,       // computes gradients, sums them over the ranks and updates the parameters
  train_part,  // adds up gradients of a part of a batch; `train` takes the last part
  evaluate     // computes the metrics of a batch, without label smoothing
};

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

  int members() const { return memory_->members(); }

  // The input of the next step.
  StepInput& input() { return *input_; }
  // Starts a step, which a GPU computes asynchronously. Up to steps_ahead() + 1 steps may be in
  // flight; more throw std::logic_error. StepMetrics::stop_requests counts `stop_requested`.
  void start(StepKind kind, bool stop_requested = false);
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
  void start_program(const Program& program, bool stop_requested);
  void reserve_memory();
  void make_executor();
  int most_waits() const;
  std::span<const float> probabilities_of_step() const;
  void make_buckets();

  const StepOptions options_;
  const RankGroups groups_;
  CompiledSteps steps_;
  std::unique_ptr<ModelMemory> memory_;
  StepCommunication communication_;
  StepPrograms programs_;
  std::unique_ptr<SessionTensors> tensors_;
  std::deque<bool> in_flight_trains_;  // whether each step in flight trains, the oldest first
  // Destroyed before the fields above, because steps in flight use them.
  std::unique_ptr<Executor> executor_;
  std::optional<StepInput> input_;
};

}  // namespace convoy::app
