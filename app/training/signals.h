// SIGTERM and SIGUSR1 ask a run to finish its step, write a checkpoint and end with status 75 (EX_TEMPFAIL), on
// which Slurm scripts requeue.
#pragma once

#include <csignal>

namespace convoy::app {

inline constexpr int kRequeueStatus = 75;

// While one is alive the two signals only set a flag, however often they come: Slurm signals mpirun and its ranks,
// and mpirun then signals the ranks again. One object at a time; the former handlers come back with its end.
class StopSignals {
 public:
  StopSignals();  // throws std::logic_error when another one is alive
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that arrived, 0 for none. Ranks get theirs at different times: agree on it before acting.
  int received() const;

 private:
  struct sigaction former_term_ {
  }, former_usr1_{};
};

}  // namespace convoy::app
