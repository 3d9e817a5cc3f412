// Runs several sessions of one rank, which take every step together. A member is a training.
// Members whose steps are compiled alike are in one session. Members are numbered through all
// sessions, session after session. A batch is loaded once for all members that train on it.
//
// On a GPU the steps of different sessions run at the same time. arrange() makes some sessions take
// turns instead, one step after the other. On a host they always take turns. Either way every
// member gets the same bits.
#pragma once

#include <span>
#include <vector>

#include "app/execute/session.h"

namespace convoy::app {

class JoinedSessions {
 public:
  // At least one session. The sessions must outlive this object.
  explicit JoinedSessions(std::vector<Session*> sessions);

  int members() const { return static_cast<int>(places_.size()); }
  Session& session_of(int member) const { return *sessions_[place(member).session].session; }

  // The functions down to average_states() do for all sessions what Session and its parts do for
  // one.
  kernels::StepControl& control(int member) {
    return session_of(member).input().control(place(member).member);
  }
  void load(data::BatchLease batch, std::span<const int> members, std::int64_t first_image = 0);
  // Stops computing a member. A session whose members are all retired takes no more steps.
  void retire(int member);
  void start(StepKind kind, bool stop_requested = false);
  StepResult finish_step();
  int steps_in_flight() const;
  int steps_ahead() const;
  void average_states();

  // Evaluates members on one pass over several sources. `groups` says which members get the batches
  // of which source. With `averages`, evaluates the moving averages of the parameters instead, in
  // the sessions that have them. Returns one StepMetrics per member. A member that was not
  // evaluated gets metrics without samples. Requires that no step is in flight.
  struct MemberBatches {
    data::BatchSource* source = nullptr;
    std::vector<int> members;
  };
  std::vector<StepMetrics> evaluate(std::span<const MemberBatches> groups, std::int64_t first_image = 0,
                                    bool averages = false);

  // Divides the sessions into `streams` streams, so that each stream has about the same work.
  // `work` holds the relative work of each session's step. The sessions of one stream take turns,
  // step by step. Different streams run at the same time.
  void arrange(int streams, std::span<const double> work);

 private:
  struct Place {
    std::size_t session;
    int member;
  };
  struct Joined {
    Session* session;
    int first;                     // number of the session's first member
    int training;                  // how many members have not been retired
    bool takes_part = true;        // whether the session takes the next step
    std::vector<int> loaded = {};  // used only within load()
  };

  const Place& place(int member) const { return places_.at(static_cast<std::size_t>(member)); }

  std::vector<Joined> sessions_;
  std::vector<Place> places_;  // for each member: its session, and its number within that session
  std::vector<StepMetrics> metrics_;
};

// Distributes items over `parts` parts so that the largest sum of work in a part is small. `work`
// holds the work of each item. Returns the part of each item. Takes the items in the order of their
// work, the most first, and puts each into the part with the least work so far.
std::vector<int> spread(std::span<const double> work, int parts);

}  // namespace convoy::app
