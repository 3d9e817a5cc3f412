// Rank 0's end of the side channel: hears what the ranks report, asks the members of an overdue operation how
// far they are, and concludes. Driven by the watchdog's thread; never blocks.
#pragma once

#include <poll.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/watchdog/diagnosis.h"
#include "comm/watchdog/rendezvous.h"
#include "comm/watchdog/wait_registry.h"

namespace convoy::comm {

// How long the hub waits before it concludes, so that what belongs together is said together.
struct HubPatience {
  std::chrono::milliseconds answers{1500};  // to a query
  std::chrono::milliseconds failures{300};  // of other ranks after the first one's
  std::chrono::milliseconds deaths{50};     // of other ranks after the first one's
  std::chrono::milliseconds farewell{500};  // for ranks that leave on an error to say why
};

class Hub {
 public:
  // Element r of `peers` is rank r, rank 0 (over a connected_pair) included.
  Hub(std::vector<HubPeer> peers, std::chrono::milliseconds timeout, HubPatience patience = {});

  void append_to_poll(std::vector<pollfd>& items) const;
  void receive(Clock::time_point now);
  // Nothing as long as there is no reason to end the job. `self` is what rank 0 is doing.
  std::optional<Verdict> conclude(Clock::time_point now, const RankState& self) const;
  bool concluding() const { return !failures_.empty() || inquiry_ || first_death_ || first_farewell_; }

  // The job ends. `follow`: the ranks wait a moment, because this one leaves on an error that it has yet to print.
  void send_verdict(bool follow = false);
  void say_goodbye();
  // All ranks have closed their ends or said goodbye.
  bool all_gone() const;
  // Connections closed after this are the doing of a signal to the whole job, not deaths.
  void ignore_deaths_after(Clock::time_point when) { deaths_count_until_ = when; }
  void leak_connections();

 private:
  struct Peer {
    RankIdentity who;
    FrameSocket socket;
    bool said_goodbye = false, abandoned = false, failed = false, dead = false;
  };
  struct Failure {
    RankIdentity who;
    std::string text;
  };
  struct Inquiry {
    OverdueWait wait;
    Clock::time_point asked;
    std::map<int, RankState> answers;
  };

  void handle(Peer& peer, const Frame& frame, Clock::time_point now);
  void handle_closed(Peer& peer, Clock::time_point now);
  void begin_inquiry(OverdueWait wait, Clock::time_point now);
  std::optional<Verdict> conclude_failures(Clock::time_point now) const;
  std::optional<Verdict> conclude_farewell(Clock::time_point now) const;
  std::optional<Verdict> conclude_deaths(Clock::time_point now, const RankState& self) const;
  std::optional<Verdict> conclude_inquiry(Clock::time_point now) const;

  std::vector<Peer> peers_;
  std::chrono::milliseconds timeout_;
  HubPatience patience_;
  std::vector<Failure> failures_;
  std::optional<Inquiry> inquiry_;
  std::optional<Clock::time_point> first_failure_, first_death_, first_farewell_, deaths_count_until_;
};

// The messages that carry these.
Frame overdue_frame(const OverdueWait& wait);
Frame state_frame(std::uint64_t channel_key, const RankState& state);

}  // namespace convoy::comm
