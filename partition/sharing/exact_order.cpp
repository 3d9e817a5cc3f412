#include "partition/sharing/exact_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "partition/sharing/bound.h"

namespace convoy::partition::sharing {
namespace {

using Clock = std::chrono::steady_clock;

class ExactSearch {
 public:
  ExactSearch(const Workload& workload, std::chrono::duration<double> time)
      : workload_(workload),
        bound_(workload),
        least_(bound_.at_start()),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(time)),
        admitted_(workload.count(), false),
        states_(workload.count() + 1, ClientSimulation(workload, Prefetch::kOn, Detail::kTimes)) {}

  ExactOrder run(const std::vector<Order>& seeds) {
    for (const Order& seed : seeds) keep(seed, simulate(workload_, seed, Prefetch::kOn).makespan);
    branch_order_ = best_;
    branch(0);
    return {best_, !stopped_};
  }

 private:
  void keep(const Order& order, Nanoseconds makespan) {
    if (!best_.empty() && makespan >= makespan_) return;
    best_ = order, makespan_ = makespan;
  }

  bool stop() {
    stopped_ = stopped_ || (makespan_ > least_ && Clock::now() >= deadline_);
    return stopped_ || makespan_ <= least_;
  }

  void branch(std::size_t depth) {
    ClientSimulation& state = states_[depth];
    if (stop()) return;
    if (!state.advance()) return keep(order_, state.makespan());
    if (bound_.of(state.remaining_work(), admitted_) >= makespan_) return;
    for (auto at = branch_order_.begin(); at != branch_order_.end(); ++at) {
      if (admitted_[*at] || has_earlier_twin(branch_order_.begin(), at)) continue;
      admitted_[*at] = true, order_.push_back(*at);
      states_[depth + 1] = state;
      states_[depth + 1].admit(*at);
      branch(depth + 1);
      admitted_[*at] = false, order_.pop_back();
    }
  }

  // Returns whether an equal client that comes before this one is not admitted yet. If there is
  // one, the search skips this client, because both lead to the same schedules.
  bool has_earlier_twin(Order::const_iterator begin, Order::const_iterator at) const {
    const auto values = [&](ClientIndex index) {
      const Client& client = workload_.client(index);
      return std::tie(client.arrival, client.copy_in, client.kernels, client.idle, client.copy_back,
                      client.bytes);
    };
    return std::any_of(begin, at,
                       [&](ClientIndex other) { return !admitted_[other] && values(other) == values(*at); });
  }

  const Workload& workload_;
  const Bound bound_;
  const Nanoseconds least_;
  const Clock::time_point deadline_;
  Order best_, order_, branch_order_;
  Nanoseconds makespan_ = 0;
  std::vector<bool> admitted_;
  std::vector<ClientSimulation> states_;  // the simulation at each depth of the search
  bool stopped_ = false;
};

}  // namespace

ExactOrder search_exactly(const Workload& workload, const std::vector<Order>& seeds,
                          std::chrono::duration<double> time) {
  if (workload.count() > kMostExactClients)
    throw std::runtime_error(
        fmt::format("exact: found {} clients, expected at most {}", workload.count(), kMostExactClients));
  return ExactSearch(workload, time).run(seeds);
}

}  // namespace convoy::partition::sharing
