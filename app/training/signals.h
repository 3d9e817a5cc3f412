// SIGTERM, SIGUSR1 and SIGINT (^C) request a run to finish its step, write a checkpoint and end
// with status 75 (EX_TEMPFAIL), on which Slurm scripts requeue.
#pragma once

#include <csignal>

#include "comm/watchdog/blocked_signals.h"

namespace convoy::app {

inline constexpr int kRequeueStatus = 75;
inline constexpr const char* kStoppedEarly = "stopped by a signal before the first step; nothing was trained";

// From its construction to the end of the process SIGTERM and SIGUSR1 only set a flag, however
// often they come: Slurm signals mpirun and its ranks, and mpirun signals the ranks again. A second
// SIGINT, at least half a second after the first, ends the process at once. A SIGINT that is
// ignored, as in a background job of a shell, stays ignored.
// A thread of its own sets the flag. The signals are blocked in the thread that makes this object
// and in threads that it starts later (comm/watchdog/blocked_signals.h), so make it before any
// thread that computes.
// Until start_up_is_over() there is nothing to keep in a checkpoint. The set-up calls received()
// between its phases and ends with status 75 itself. A phase that takes a second longer is not
// waited for: the process ends.
class StopSignals {
 public:
  StopSignals();  // throws std::logic_error the second time
  void start_up_is_over() const;

  // Returns the last signal that arrived, 0 for none. Ranks get signals at different times and must
  // agree before they act.
  int received() const;

 private:
  comm::BlockedSignals blocked_{comm::signal_set({SIGTERM, SIGUSR1, SIGINT})};
};

}  // namespace convoy::app
