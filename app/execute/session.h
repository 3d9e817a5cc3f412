// A session runs the training and evaluation steps of a network on one rank:
//
//   Session session(compile_steps(network, options, groups), options, groups);
//   StepInput& input = session.input();
//   for (std::uint64_t step = 0; step < 100; ++step) {
//     input.load(source.next());
//     input.control().step = step, input.control().learning_rate = 0.1f;
//     session.start(StepKind::train);
//     if (session.steps_in_flight() > session.steps_ahead()) report(session.finish_step());
//   }
//   while (session.steps_in_flight() > 0) report(session.finish_step());
//
// StepInput::load() says what `source` must deliver. It outlives the session and has at least
// steps_ahead() + 1 buffers. Stages also call connect_stages() before the first step.
//
// A session may run the same steps for several trainings at once, its members
// (StepOptions::members). Each gets the same bits as if it ran alone. Steps exchange data between
// the ranks of the session's groups, so all of these start the same steps in the same order. Only
// one thread at a time may use a session. session_tools.h serves code that times or arranges steps.
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
  // Computes gradients, adds those of the parts before, sums over the ranks and updates the
  // parameters.
  train,
  // Computes the gradients of a part of a batch, and adds them to those of the parts before. The
  // last part is a step of kind `train`. Every part is a step with results of its own. For every
  // part, also the last one, the caller sets control().part and share (StepInput::control()).
  train_part,
  // Computes the metrics of a batch, without label smoothing.
  evaluate
};

class Session {
 public:
  // Reserves all memory and sets the initial values. fit_into_limit() (compile/fit_memory.h) makes
  // steps fit into options.memory_limit before. `steps` must have been compiled with
  // `options`; if groups.stages is set, `steps` are this rank's stage (stage_of_steps()).
  // groups.world and groups.replicas must be set. The collectives of the groups and options.gate
  // must outlive the session. Collective over the ranks of `groups`. Throws std::invalid_argument
  // if a step that trains or has stages keeps probabilities, a step with stages takes its batch in
  // parts, or there are several members and several ranks. Throws kernels::OutOfMemory if this rank
  // lacks memory for the step, and another std::runtime_error if the step exceeds
  // options.memory_limit or its copies do not fit into host memory. Other ranks may succeed, so let
  // the ranks agree (run_on_all_ranks.h) before the next collective call.
  Session(CompiledSteps steps, const StepOptions& options, const RankGroups& groups);
  // Waits for the steps in flight. It may wait for other ranks that use memory of this session, so
  // all ranks destroy their sessions in the same order.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Connects the stages of a partitioned step; without stages it does nothing. Call it before the
  // first step, when all stages have made their sessions. Collective over the stages.
  void connect_stages();

  // The input of the next step. It may change while at most steps_ahead() steps are in flight, but
  // images that the caller writes (StepInput::images()) only while none is.
  StepInput& input() { return *input_; }
  // Starts a step with the values that input() has now. On a host, start() computes the step. On a
  // GPU the step goes on after start() returns. With options.gate, start() may wait for other
  // sessions. Throws std::logic_error if steps_ahead() + 1 steps are in flight, if a session
  // without StepOptions::training shall train, or for `train_part` without StepOptions::accumulate.
  // Throws std::runtime_error if the step fails; after that, only destroy the session.
  // StepMetrics::stop_requests counts the ranks whose `stop_requested` is true.
  void start(StepKind kind, bool stop_requested = false);
  // Waits for the oldest step in flight and returns its results, which refer to memory of the
  // session (step_result.h says for how long). Throws std::logic_error if no step is in flight, and
  // std::runtime_error if the step failed; after that, only destroy the session.
  StepResult finish_step();
  int steps_in_flight() const;  // steps that were started and not finished
  // Returns how many steps to keep in flight so that a GPU never waits for the host. It is 0 on a
  // host, where start() itself computes the step.
  int steps_ahead() const;
  // Later steps leave out this member on a host; on a GPU they compute it all the same. From then
  // on its metrics, parameters and other tensors have no meaning. Throws std::out_of_range if there
  // is no such member.
  void retire(int member);

  const CompiledSteps& steps() const { return steps_; }
  const ModelMemory& memory() const { return *memory_; }  // lists the tensors that outlive a step
  // Reads and writes those tensors, while no step is in flight.
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
