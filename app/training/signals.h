// Handles SIGTERM, SIGUSR1 and SIGINT (^C). They ask a run to finish its step, write a checkpoint
// and end with status 75 (EX_TEMPFAIL), after which a Slurm script can requeue the job.
#pragma once

#include <csignal>

#include "comm/watchdog/blocked_signals.h"

namespace convoy::app {

inline constexpr int kRequeueStatus = 75;
inline constexpr const char* kStoppedEarly = "stopped by a signal before the first step; nothing was trained";

// Tells a run whether it must stop early.
class StopRequest {
 public:
  virtual ~StopRequest() = default;
  // Returns a number other than 0 once the run must finish its step, write a checkpoint and end.
  virtual int received() const = 0;
  virtual void start_up_is_over() const {}
};

// Handles the signals from its construction to the end of the process. SIGTERM and SIGUSR1 only set
// a flag, however often they come: Slurm signals mpirun and its ranks, and mpirun signals the ranks
// again. A second SIGINT, at least half a second after the first, ends the process at once. A
// SIGINT that is ignored, as in a background job of a shell, stays ignored.
//
// A separate thread receives the signals. They are blocked in the thread that makes this object and
// in all threads that this thread starts later (comm/watchdog/blocked_signals.h). So make the
// object before the threads that compute.
//
// Until start_up_is_over() is called, there is nothing to save in a checkpoint. The set-up then
// checks received() between its phases and ends the process with status 75. If a phase takes more
// than a second after the signal, this object ends the process.
class StopSignals final : public StopRequest {
 public:
  StopSignals();  // throws std::logic_error if another object exists
  void start_up_is_over() const override;
  // Returns the last signal that arrived, or 0. Signals reach the ranks at different times, so all
  // ranks must agree before they act on a signal.
  int received() const override;

 private:
  comm::BlockedSignals blocked_{comm::signal_set({SIGTERM, SIGUSR1, SIGINT})};
};

}  // namespace convoy::app
