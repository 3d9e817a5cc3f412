// The hub is the watchdogs' centre on rank 0, to which every rank is connected (watchdog.h). It
// collects the ranks' reports, asks the members of an overdue operation how far they are, and makes
// the diagnosis. Only the watchdog's thread calls its functions, which never block.
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

// The times for which the hub collects related reports before it makes a diagnosis, so that one
// message covers all of them.
struct HubDelays {
  std::chrono::milliseconds answers{1500};   // time to wait for answers to a query
  std::chrono::milliseconds failures{300};   // time to wait for more failures after the first one
  std::chrono::milliseconds deaths{50};      // time to wait for more deaths after the first one
  std::chrono::milliseconds abandoned{500};  // time for ranks that leave with an error to print it
};

class Hub {
 public:
  // Element r of `peers` is the connection to rank r. Rank 0 has a connection to itself
  // (connected_pair()).
  Hub(std::vector<HubPeer> peers, std::chrono::milliseconds timeout, HubDelays delays = {});

  void append_to_poll(std::vector<pollfd>& items) const;
  void receive(Clock::time_point now);
  // Returns the diagnosis, or nothing while there is no reason to end the job. `self` is the state
  // of rank 0.
  std::optional<Diagnosis> conclude(Clock::time_point now, const RankState& self) const;
  bool concluding() const { return !failures_.empty() || inquiry_ || first_death_ || first_abandoned_; }

  // Tells all ranks that the job ends. With `follow`, the other ranks wait a moment before they
  // end, so that rank 0 can print its error first.
  void send_diagnosis(bool follow = false);
  void say_goodbye();
  // Returns whether all ranks have closed their connections or said goodbye.
  bool all_gone() const;
  // Connections that close after `when` do not count as deaths: a signal that went to the whole job
  // has ended their processes.
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
    Clock::time_point begun;
    std::map<int, RankState> answers;
  };

  void handle(Peer& peer, const Frame& frame, Clock::time_point now);
  void handle_closed(Peer& peer, Clock::time_point now);
  void begin_inquiry(OverdueWait wait, Clock::time_point now);
  std::optional<Diagnosis> conclude_failures(Clock::time_point now) const;
  std::optional<Diagnosis> conclude_abandoned(Clock::time_point now) const;
  std::optional<Diagnosis> conclude_deaths(Clock::time_point now, const RankState& self) const;
  std::optional<Diagnosis> conclude_inquiry(Clock::time_point now) const;

  std::vector<Peer> peers_;
  std::chrono::milliseconds timeout_;
  HubDelays delays_;
  std::vector<Failure> failures_;
  std::optional<Inquiry> inquiry_;
  std::optional<Clock::time_point> first_failure_, first_death_, first_abandoned_, deaths_count_until_;
};

// These functions return the messages by which watchdogs send an overdue wait and the state of a
// rank.
Frame overdue_frame(const OverdueWait& wait);
Frame state_frame(std::uint64_t channel_key, const RankState& state);

}  // namespace convoy::comm
