// Ends the job, with one line that says why, when a rank dies, stalls or fails: a thread on every rank that
// MPI cannot hold up. It knows nothing of MPI; the ranks' threads are connected by sockets of their own.
//
//  - A rank dies: its connection closes, the hub on rank 0 names it at once. When rank 0 dies every rank
//    notices, and one rank of each host says it.
//  - A wait lasts longer than the timeout: the rank reports it to the hub, the hub asks the members of the
//    operation how far they are and names those that have not come to it or do not answer.
//  - The collectives of a rank's device fail: the hub prints each different complaint once.
//  - A rank leaves on an error that it prints itself (abandon).
//
// All surviving ranks then end by _exit with status 1: MPI_Abort and MPI_Finalize would print or wait.
//
// mpirun answers the death of a rank with SIGTERM to the others, which is also how a batch system asks for a
// checkpoint. While SIGTERM has its default action the watchdog holds it back for a moment and looks for the
// death that caused it. A program with a handler of its own is ended by the verdict before it comes to act on
// the signal. No handler runs on the thread that makes the watchdog, nor on those that it starts while the watchdog
// lives: they have SIGTERM blocked, the watchdog's own thread takes it.
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
  std::chrono::milliseconds timeout{300'000};  // of one blocking wait; zero: no limit
  HubPatience patience;
  // When rank 0 has not reacted to a report for this long it is the one that is missing.
  std::chrono::milliseconds hub_answers{4000};
};

// A rank's place on the side channel.
struct SideChannel {
  RankIdentity self, hub_rank;
  std::string token;         // of the job
  FrameSocket link;          // to the hub; not open when there is none
  std::unique_ptr<Hub> hub;  // on rank 0
};

class Watchdog {
 public:
  // `waits` outlives the watchdog.
  Watchdog(WaitRegistry& waits, SideChannel channel, WatchdogOptions options);
  // An orderly end: the other ranks will not take it for a death.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // This rank leaves on an error that it prints itself: the other ranks end without a word. The watchdog is
  // of no use afterwards.
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

  // When there is no hub to speak for all.
  [[noreturn]] void end_with(const std::string& line);

  const BlockedSignals terminate_blocked_{signal_set({SIGTERM})};
  WaitRegistry& waits_;
  SideChannel channel_;
  const bool connected_;
  WatchdogOptions options_;
  UniqueFd wake_read_, wake_write_;
  std::atomic<Request> request_ = Request::none;

  // Of the thread.
  Clock::time_point last_look_;
  std::optional<OverdueWait> reported_;
  Clock::time_point reported_at_;
  std::optional<Clock::time_point> link_lost_, terminate_seen_;
  bool hub_said_goodbye_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace convoy::comm
