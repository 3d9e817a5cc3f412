// SIGTERM, SIGUSR1 and SIGINT (^C) ask a run to finish its step, write a checkpoint and end with status 75
// (EX_TEMPFAIL), on which Slurm scripts requeue.
#pragma once

#include <csignal>

#include "comm/watchdog/blocked_signals.h"

namespace convoy::app {

inline constexpr int kRequeueStatus = 75;
inline constexpr const char* kStoppedEarly = "stopped by a signal before the first step; nothing was trained";

// From its making to the end of the process the first two only set a flag, however often they come: Slurm signals
// mpirun and its ranks, mpirun then signals the ranks again, and none of it may change the exit status. A second SIGINT,
// half a second later or more, ends the process at once: somebody waits at a terminal. Where SIGINT is ignored, as in a
// shell's background job, it stays so. The flag is set on a thread of its own; the signals are blocked in the thread
// that makes this object and in those that it starts while the object lives
// (comm/watchdog/blocked_signals.h says why), so it is made before any thread that computes.
//
// Until start_up_is_over() there is nothing that a checkpoint could keep: whoever sets up asks
// received() between its parts and ends with status 75 itself. A part that takes longer than a
// second more is not waited for: the process ends then.
class StopSignals {
 public:
  StopSignals();  // throws std::logic_error the second time
  void start_up_is_over() const;

  // The last signal that arrived, 0 for none. Ranks get theirs at different times: agree on it before acting.
  int received() const;

 private:
  comm::BlockedSignals blocked_{comm::signal_set({SIGTERM, SIGUSR1, SIGINT})};
};

}  // namespace convoy::app
