// Gives code that times, traces or arranges steps the access to a session that it needs. To run
// steps, a Session is enough.
#pragma once

#include <vector>

#include "app/execute/executor.h"
#include "app/execute/program_builder.h"
#include "app/execute/session.h"

namespace convoy::app {

class SessionTools {
 public:
  // The session must outlive this object.
  explicit SessionTools(Session& session) : session_(session) {}

  // Returns the programs of the session. They may get lanes before the first step.
  StepPrograms& programs() const { return *session_.programs_; }
  // On a GPU, makes every later step wait for the newest step that `before` has started. `before`
  // is another session of this rank, which must outlive this one. If it is null, steps wait for no
  // other session.
  void start_after(const Session* before);

  // Fills the memory with the control values of a full batch and with numbers to compute with, so
  // that instructions can be timed one by one. Timing spoils parameters and states: call
  // SessionTensors::reset() afterwards.
  void prepare_timing();

  // Starts a step as Session::start() does, but by a copy of a training program with other lanes.
  // The copy must live as long as the session.
  void start(const Program& program) { session_.start_program(program, false); }

  // Prepares a trace of the first `steps` training steps that are started after begin_trace(). It
  // changes no results. On a host it does nothing; there, use Program::instrument().
  void prepare_trace(int steps);
  void begin_trace();
  // Returns the traced steps in their order. All of them must be finished.
  std::vector<TracedStep> traced_steps() const;

  // Returns how many gradient buckets (comm/buckets.h) of the step in flight are summed over the
  // ranks. Used on hosts, where only one step is in flight.
  int summed_buckets() const;

 private:
  Session& session_;
};

}  // namespace convoy::app
