// A session runs the training and evaluation steps of a network on one rank. Its constructor
// reserves all memory and builds the programs, so that a step only runs a program:
//
//   StepInput& input = session.input();
//   for (std::uint64_t step = 0; step < 100; ++step) {
//     input.load(source.next());
//     input.control().step = step, input.control().learning_rate = 0.1f;
//     session.start(StepKind::train);
//     if (session.steps_in_flight() > session.steps_ahead()) report(session.finish_step());
//   }
//   while (session.steps_in_flight() > 0) report(session.finish_step());
//
// A session may run the same steps for several trainings at once, its members. Each gets the same
// bits as if it ran alone. All ranks of a session's groups start the same steps in the same order,
// because steps exchange data between them, and destroy their sessions in the same order. Only one
// thread at a time may use a session. session_tools.h serves code that times or arranges steps.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "app/compile/compiled_steps.h"
#include "app/execute/model_memory.h"
#include "app/execute/session_tensors.h"
#include "app/execute/step_input.h"
#include "app/execute/step_result.h"

namespace convoy::app {

class Program;
struct StepCommunication;
struct StepPrograms;

enum class StepKind : std::uint8_t {
  train,       // computes gradients, sums them over the ranks and updates the parameters
  train_part,  // adds up gradients of a part of a batch; `train` takes the last part
  evaluate     // computes the metrics of a batch, without label smoothing
};

class Session {
 public:
  // `steps` must have been compiled with `options`. If groups.stages is set, they are this rank's
  // stage of a partitioned step. With several members, groups.world must have only one rank. The
  // groups must outlive the session. Collective over the ranks of `groups`. Throws
  // std::invalid_argument if options exclude each other or the groups, and std::runtime_error
  // (kernels::OutOfMemory is one) if memory does not suffice.
  Session(CompiledSteps steps, const StepOptions& options, const RankGroups& groups);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Connects the stages of a partitioned step; without stages it does nothing. Call it after all
  // stages have made their sessions and before the first step. Collective over the stages.
  void connect_stages();

  StepInput& input() { return *input_; }
  // Starts a step, which a GPU computes asynchronously. Up to steps_ahead() + 1 steps may be in
  // flight; more throw std::logic_error. StepMetrics::stop_requests counts `stop_requested`.
  void start(StepKind kind, bool stop_requested = false);
  // Waits for the oldest step in flight and returns its results. Throws std::runtime_error if the
  // device failed, and std::logic_error if no step is in flight.
  StepResult finish_step();
  int steps_in_flight() const;  // steps that were started and not finished
  // Returns how many steps to keep in flight so that a GPU never waits for the host. It is 0 on a
  // host, where start() itself computes the step.
  int steps_ahead() const;
  // Tells that this member need not be computed any more. Its metrics have no meaning from then on.
  void retire(int member);

  const CompiledSteps& steps() const { return steps_; }
  const ModelMemory& memory() const { return *memory_; }
  SessionTensors& tensors() const { return *tensors_; }

 private:
  friend class SessionTools;
  void start_program(const Program& program, bool stop_requested);

  const StepOptions options_;
  const RankGroups groups_;
  const CompiledSteps steps_;
  std::unique_ptr<ModelMemory> memory_;
  std::unique_ptr<StepCommunication> communication_;
  std::unique_ptr<StepPrograms> programs_;
  std::unique_ptr<SessionTensors> tensors_;
  std::deque<bool> in_flight_trains_;   // whether each step in flight trains, the oldest first
  std::unique_ptr<Executor> executor_;  // destroyed before the fields above, which its steps use
  std::unique_ptr<StepInput> input_;
};

}  // namespace convoy::app
