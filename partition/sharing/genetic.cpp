#include "partition/sharing/genetic.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "partition/random.h"

namespace convoy::partition::sharing {
namespace {

using Clock = std::chrono::steady_clock;

struct Individual {
  Order order = {};
  Nanoseconds makespan = 0;
};

class GeneticSearch {
 public:
  GeneticSearch(const Workload& workload, const GeneticLimits& limits)
      : workload_(workload),
        limits_(limits),
        random_(limits.seed),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(limits.time)),
        taken_(workload.count()) {}

  Order run(const std::vector<Order>& seeds) {
    for (auto seed = seeds.rbegin(); seed != seeds.rend(); ++seed)
      add(*seed);  // in reverse, so that of several equal orders the first one remains
    for (int runs_without_gain = 0; runs_without_gain < kRuns; ++runs_without_gain) {
      if (population_.empty() || !done()) fill();
      breed_until_nothing_is_gained();
      if (population_.front().makespan < best_.makespan) best_ = population_.front(), runs_without_gain = 0;
      if (done()) break;
      population_.clear();
    }
    return best_.order;
  }

 private:
  static constexpr std::size_t kPopulation = 32;
  static constexpr int kRuns = 10;
  static constexpr std::int64_t kPatience = 1000, kPatiencePerClient = 100;

  bool late() const { return Clock::now() >= deadline_; }
  bool done() const {
    const Nanoseconds shortest = std::min(population_.front().makespan, best_.makespan);
    return workload_.count() < 2 || shortest <= limits_.bound || late();
  }

  void breed_until_nothing_is_gained() {
    const std::int64_t patience = kPatience + kPatiencePerClient * workload_.count();
    for (std::int64_t since = 0; since < patience && !done(); ++since) {
      const Nanoseconds shortest = population_.front().makespan;
      breed();
      if (population_.front().makespan < shortest) since = 0;
    }
  }

  Nanoseconds makespan(const Order& order) const {
    return simulate(workload_, order, Prefetch::kOn).makespan;
  }

  // Inserts an order. If there is an order of equal makespan, the new one replaces it, so that the
  // population keeps its variety.
  void add(Order order) {
    const Nanoseconds length = makespan(order);
    const auto at = std::ranges::lower_bound(population_, length, {}, &Individual::makespan);
    if (at != population_.end() && at->makespan == length)
      at->order = std::move(order);
    else
      population_.insert(at, {std::move(order), length});
  }

  // Fills the population with random orders. Gives up after some tries, because a few clients do
  // not have enough different orders.
  void fill() {
    Order order(workload_.count());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t tries = 0; tries < 2 * kPopulation && population_.size() < kPopulation; ++tries) {
      if (!population_.empty() && late()) return;
      for (std::int64_t i = std::ssize(order) - 1; i > 0; --i)
        std::swap(order[i], order[random_.below(i + 1)]);
      add(order);
    }
  }

  const Order& parent() {
    const std::int64_t size = std::ssize(population_);
    return population_[std::min(random_.below(size), random_.below(size))].order;
  }

  void breed() {
    Order child = cross(parent(), parent());
    const std::int64_t mutations = random_.below(3);
    for (std::int64_t i = 0; i < mutations; ++i) mutate(child);
    add(std::move(child));
    if (population_.size() > kPopulation) population_.pop_back();
  }

  Order cross(const Order& first, const Order& second) {
    const std::int64_t point = random_.below(std::ssize(first) + 1);
    Order child(first.begin(), first.begin() + point);
    std::fill(taken_.begin(), taken_.end(), false);
    for (const ClientIndex client : child) taken_[client] = true;
    std::ranges::copy_if(second, std::back_inserter(child),
                         [&](ClientIndex client) { return !taken_[client]; });
    return child;
  }

  void mutate(Order& order) {
    const std::int64_t from = random_.below(std::ssize(order)), to = random_.below(std::ssize(order));
    if (random_.below(2) == 0)
      std::swap(order[from], order[to]);
    else if (from < to)
      std::rotate(order.begin() + from, order.begin() + from + 1, order.begin() + to + 1);
    else
      std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
  }

  const Workload& workload_;
  const GeneticLimits limits_;
  Random random_;
  const Clock::time_point deadline_;
  std::vector<Individual> population_;                                    // sorted by ascending makespan
  Individual best_{.makespan = std::numeric_limits<Nanoseconds>::max()};  // best order of earlier populations
  std::vector<bool> taken_;  // used inside cross(): one flag per client
};

}  // namespace

Order search_genetically(const Workload& workload, const std::vector<Order>& seeds,
                         const GeneticLimits& limits) {
  return GeneticSearch(workload, limits).run(seeds);
}

}  // namespace convoy::partition::sharing
