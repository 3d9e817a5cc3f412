// Ends the job, with one line that says why, when a rank dies, stalls or fails. A thread on every
// rank does this, independent of MPI, over sockets of its own to rank 0 (the hub).
//
//  - A rank dies: its connection closes and the hub names it. If rank 0 dies, every rank notices,
//    and one rank of each host prints that rank 0 died.
//  - A wait exceeds the timeout: the rank reports it. The hub asks the members of the operation how
//    far they are, and names those that have not reached it or do not answer.
//  - Collectives of a rank's device fail: the hub prints each different complaint once.
//  - A rank leaves on an error that it prints itself (abandon): nothing else is printed.
//
// All surviving ranks then end with status 1 by std::quick_exit, because MPI_Abort and MPI_Finalize
// would print or wait.
//
// SIGTERM may mean that a rank died, because mpirun then sends it to all ranks, or that a batch
// system wants to end the job. While SIGTERM has its default action, the watchdog holds it back for
// a moment and looks for a death. If the program has its own handler, the diagnosis ends the
// process before the handler can act. Only the watchdog's thread takes SIGTERM: it is blocked on
// the thread that makes the watchdog, and on threads that this thread starts later.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "comm/watchdog/blocked_signals.h"
#include "comm/watchdog/hub.h"

namespace convoy::comm {

struct WatchdogOptions {
  std::chrono::milliseconds timeout{300'000};  // limits one blocking wait; zero means no limit
  HubDelays delays;
  // If rank 0 does not react to a report for this long, the watchdog names rank 0 as the rank that
  // does not respond.
  std::chrono::milliseconds hub_answers{4000};
};

// The connection of a rank to the hub, which is on rank 0.
struct WatchdogSocket {
  RankIdentity self, hub_rank;
  std::string token;         // the job's token
  FrameSocket link;          // connection to the hub; not open if there is none
  std::unique_ptr<Hub> hub;  // null except on rank 0
};

class Watchdog {
 public:
  // `waits` must outlive the watchdog.
  Watchdog(WaitRegistry& waits, WatchdogSocket channel, WatchdogOptions options);
  // Says goodbye to the hub, so that the other ranks do not take the end of this rank for a death.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Tells the other ranks that this rank leaves on an error that it prints itself, so that they
  // end silently. Do not use the watchdog afterwards.
  void abandon();

 private:
  enum class Request : std::uint8_t { none, stop, abandon };

  void run();
  void run_once();
  void account_for_stops(Clock::time_point now);
  void serve_hub(Clock::time_point now);
  void read_link(Clock::time_point now);
  void handle(const Frame& frame, Clock::time_point now);
  void look_at_devices(Clock::time_point now);
  void check_waits(Clock::time_point now);
  void check_terminate(Clock::time_point now);
  void take_leave();
  void await_silence(std::chrono::milliseconds most);
  void follow_hub();
  void wake();
  std::chrono::milliseconds tick() const;

  // Prints the line and ends this process. Used if rank 0 cannot do this for all ranks.
  [[noreturn]] void end_with(const std::string& line);

  const BlockedSignals terminate_blocked_{signal_set({SIGTERM})};
  WaitRegistry& waits_;
  WatchdogSocket channel_;
  const bool connected_;
  WatchdogOptions options_;
  UniqueFd wake_read_, wake_write_;
  std::atomic<Request> request_ = Request::none;

  // Only the watchdog's thread uses the members from here to ending_.
  Clock::time_point last_look_;
  std::optional<OverdueWait> reported_;
  Clock::time_point reported_at_;
  std::optional<Clock::time_point> link_lost_, terminate_seen_;
  bool hub_said_goodbye_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace convoy::comm
