#include "app/execute/joined_sessions.h"

#include <algorithm>
#include <numeric>

#include "app/execute/session_tools.h"
#include "data/loader/shared_leases.h"

namespace convoy::app {

JoinedSessions::JoinedSessions(std::vector<Session*> sessions) {
  for (Session* session : sessions) {
    const int first = members(), count = session->memory().members();
    for (int member = 0; member < count; ++member) places_.push_back({sessions_.size(), member});
    sessions_.push_back({session, first, count});
  }
  metrics_.resize(places_.size());
}

void JoinedSessions::load(data::BatchLease batch, std::span<const int> members, std::int64_t first_image) {
  for (Joined& joined : sessions_) joined.loaded.clear();
  for (const int member : members) {
    Joined& joined = sessions_[place(member).session];
    if (joined.takes_part) joined.loaded.push_back(place(member).member);
  }
  const auto loads = [](const Joined& joined) { return !joined.loaded.empty(); };
  const auto takers = std::ranges::count_if(sessions_, loads);
  if (takers == 0) return;
  std::vector<data::BatchLease> leases = data::shared_leases(std::move(batch), static_cast<int>(takers));
  for (Joined& joined : sessions_) {
    if (!loads(joined)) continue;
    joined.session->input().load(std::move(leases.back()), first_image, joined.loaded);
    leases.pop_back();
  }
}

void JoinedSessions::retire(int member) {
  Joined& joined = sessions_[place(member).session];
  joined.session->retire(place(member).member);
  joined.takes_part = --joined.training > 0;
}

void JoinedSessions::start(StepKind kind, bool stop_requested) {
  for (Joined& joined : sessions_)
    if (joined.takes_part) joined.session->start(kind, stop_requested);
}

// Makes every session finish its oldest step in flight. All sessions start and finish their steps
// together, so these oldest steps were started together. A session whose members have all been
// retired starts no more steps, so it soon has no step in flight. Its members then get empty
// metrics.
StepResult JoinedSessions::finish_step() {
  double exposed_comm_ms = 0;
  for (const Joined& joined : sessions_) {
    const auto own = std::span(metrics_).subspan(static_cast<std::size_t>(joined.first));
    if (joined.session->steps_in_flight() > 0) {
      const StepResult result = joined.session->finish_step();
      std::ranges::copy(result.metrics, own.begin());
      exposed_comm_ms = std::max(exposed_comm_ms, result.exposed_comm_ms);
    } else {
      std::ranges::fill(own.first(static_cast<std::size_t>(joined.session->memory().members())),
                        StepMetrics());
    }
  }
  return {metrics_, {}, exposed_comm_ms};
}

int JoinedSessions::steps_in_flight() const {
  int most = 0;
  for (const Joined& joined : sessions_) most = std::max(most, joined.session->steps_in_flight());
  return most;
}

int JoinedSessions::steps_ahead() const { return sessions_[0].session->steps_ahead(); }

void JoinedSessions::average_states() {
  for (const Joined& joined : sessions_) joined.session->tensors().average_states();
}

std::vector<StepMetrics> JoinedSessions::evaluate(std::span<const MemberBatches> groups,
                                                  std::int64_t first_image, bool averages) {
  std::vector<StepMetrics> sums(places_.size());
  // A single session may be a stage of a partitioned step. It takes part even if it has no averages
  // itself, because the other stages evaluate theirs. Several sessions are never partitioned.
  const auto has_averages = [&](const Joined& joined) {
    return sessions_.size() == 1 || !joined.session->memory().averages().empty();
  };
  for (Joined& joined : sessions_) {
    joined.takes_part = joined.training > 0 && (!averages || has_averages(joined));
    if (averages && joined.takes_part) joined.session->tensors().exchange_averages();
  }
  const auto finish = [&] {
    const std::span<const StepMetrics> finished = finish_step().metrics;
    for (std::size_t member = 0; member < sums.size(); ++member) sums[member] += finished[member];
  };
  for (std::int64_t step = 0; step < groups[0].source->steps_per_epoch(); ++step) {
    for (const MemberBatches& group : groups) load(group.source->next(), group.members, first_image);
    start(StepKind::evaluate);
    if (steps_in_flight() > steps_ahead()) finish();
  }
  while (steps_in_flight() > 0) finish();
  for (Joined& joined : sessions_) {
    if (averages && joined.takes_part) joined.session->tensors().exchange_averages();
    joined.takes_part = joined.training > 0;
  }
  return sums;
}

void JoinedSessions::arrange(int streams, std::span<const double> work) {
  const std::vector<int> stream_of = spread(work, streams);
  for (int stream = 0; stream < streams; ++stream) {
    std::vector<Session*> turns;
    for (std::size_t i = 0; i < sessions_.size(); ++i)
      if (stream_of[i] == stream) turns.push_back(sessions_[i].session);
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const Session* before = turns.size() > 1 ? turns[(i + turns.size() - 1) % turns.size()] : nullptr;
      SessionTools(*turns[i]).start_after(before);
    }
  }
}

std::vector<int> spread(std::span<const double> work, int parts) {
  std::vector<std::size_t> order(work.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
  std::vector<double> sums(static_cast<std::size_t>(parts), 0);
  std::vector<int> part_of(work.size());
  for (const std::size_t item : order) {
    const auto least = std::ranges::min_element(sums);
    *least += work[item];
    part_of[item] = static_cast<int>(least - sums.begin());
  }
  return part_of;
}

}  // namespace convoy::app
