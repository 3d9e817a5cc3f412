#include "partition/sharing/policies.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <tuple>

#include "partition/sharing/bound.h"
#include "partition/sharing/exact_order.h"
#include "partition/sharing/genetic.h"
#include "partition/sharing/johnson.h"

namespace convoy::partition::sharing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, kAllPolicies.size()> kNames = {"none",    "fifo",    "weight",
                                                                      "johnson", "genetic", "exact"};

// Returns the order in which clients are copied to the device if the copy engine always takes the
// first client of `priority` that has arrived.
Order order_of_arrived(const Workload& workload, const Order& priority) {
  std::vector<ClientIndex> place(priority.size());
  for (std::size_t i = 0; i < priority.size(); ++i) place[priority[i]] = static_cast<ClientIndex>(i);
  const Order coming = order_by_arrival(workload);
  // The positions in `priority` of the clients that have arrived and are not copied yet.
  std::priority_queue<ClientIndex, Order, std::greater<>> waiting;
  Order order;
  Nanoseconds clock = 0;
  for (auto next = coming.begin(); order.size() < priority.size();) {
    if (waiting.empty()) clock = std::max(clock, workload.client(*next).arrival);
    while (next != coming.end() && workload.client(*next).arrival <= clock) waiting.push(place[*next++]);
    order.push_back(priority[waiting.top()]);
    waiting.pop();
    clock += workload.client(order.back()).copy_in;
  }
  return order;
}

// Returns the client's weight (order_by_weight()) without the division by the total time of the
// window. This total is equal for all clients of a window, so it does not change their order.
double weight_of(const Workload& workload, ClientIndex client) {
  const Nanoseconds copy = workload.client(client).copy_in;
  return copy == 0 ? std::numeric_limits<double>::infinity()
                   : static_cast<double>(workload.busy(client)) / static_cast<double>(copy);
}

std::vector<Order> simple_orders(const Workload& workload, const PolicyOptions& options) {
  std::vector<Order> orders = orders_by_johnson(workload);
  orders.insert(orders.begin(), order_by_weight(workload, options.window));
  orders.insert(orders.begin(), order_by_arrival(workload));
  return orders;
}

std::pair<Order, bool> find_order(const Workload& workload, Policy policy, const PolicyOptions& options,
                                  Nanoseconds bound) {
  switch (policy) {
    case Policy::kNone:
    case Policy::kFifo:
      return {order_by_arrival(workload), false};
    case Policy::kWeight:
      return {order_by_weight(workload, options.window), false};
    case Policy::kJohnson: {
      const std::vector<Order> orders = orders_by_johnson(workload);
      const auto makespan = [&](const Order& order) {
        return simulate(workload, order, Prefetch::kOn).makespan;
      };
      return {*std::ranges::min_element(orders, {}, makespan), false};
    }
    case Policy::kGenetic: {
      GeneticLimits limits{.seed = options.seed, .bound = bound};
      if (options.time_limit) limits.time = *options.time_limit;
      return {search_genetically(workload, simple_orders(workload, options), limits), false};
    }
    case Policy::kExact: {
      constexpr double kNoLimit = 1e9;
      ExactOrder found = search_exactly(workload, simple_orders(workload, options),
                                        options.time_limit.value_or(std::chrono::duration<double>(kNoLimit)));
      return {std::move(found.order), found.complete};
    }
  }
  throw std::logic_error("sharing: unknown policy");
}

}  // namespace

std::string_view policy_name(Policy policy) { return kNames[static_cast<std::size_t>(policy)]; }

std::optional<Policy> policy_from(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return kAllPolicies[found - kNames.begin()];
}

Prefetch prefetch_of(Policy policy) { return policy == Policy::kNone ? Prefetch::kOff : Prefetch::kOn; }

Order order_by_arrival(const Workload& workload) {
  Order order(workload.count());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](ClientIndex client) { return workload.client(client).arrival; });
  return order;
}

Order order_by_weight(const Workload& workload, std::int32_t window) {
  Order waiting = order_by_arrival(workload), order;
  Nanoseconds clock = 0;
  const auto copy = [&](ClientIndex client) { return workload.client(client).copy_in; };
  for (bool highest = true; !waiting.empty(); highest = !highest) {
    clock = std::max(clock, workload.client(waiting.front()).arrival);
    auto end = waiting.begin() + std::min<std::ptrdiff_t>(window, std::ssize(waiting));
    end = std::find_if(waiting.begin(), end,
                       [&](ClientIndex client) { return workload.client(client).arrival > clock; });
    const auto before = [&](ClientIndex a, ClientIndex b) {
      const double sign = highest ? -1 : 1;
      return std::tuple(sign * weight_of(workload, a), copy(a)) <
             std::tuple(sign * weight_of(workload, b), copy(b));
    };
    const auto taken = std::min_element(waiting.begin(), end, before);
    clock += copy(*taken);
    order.push_back(*taken);
    waiting.erase(taken);
  }
  return order;
}

std::vector<Order> orders_by_johnson(const Workload& workload) {
  const Nanoseconds engines = workload.device().compute_engines;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> two, three;
  bool copies_back = false;
  for (ClientIndex client = 0; client < workload.count(); ++client) {
    const Nanoseconds in = engines * workload.client(client).copy_in, busy = workload.busy(client),
                      back = engines * workload.client(client).copy_back;
    two.emplace_back(in, busy), three.emplace_back(in + busy, busy + back);
    copies_back = copies_back || back > 0;
  }
  std::vector<Order> orders = {order_of_arrived(workload, johnson_order(two))};
  if (copies_back) orders.push_back(order_of_arrived(workload, johnson_order(three)));
  return orders;
}

PolicyResult run_policy(const Workload& workload, Policy policy, const PolicyOptions& options,
                        Nanoseconds bound) {
  const auto began = Clock::now();
  const auto [order, complete] = find_order(workload, policy, options, bound);
  PolicyResult result{.policy = policy, .schedule = simulate(workload, order, prefetch_of(policy))};
  result.optimal = complete || result.schedule.makespan == bound;
  result.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return result;
}

std::size_t shortest(const std::vector<PolicyResult>& results) {
  constexpr std::array kSimplest = {Policy::kFifo,    Policy::kJohnson, Policy::kWeight,
                                    Policy::kGenetic, Policy::kExact,   Policy::kNone};
  const auto key = [&](const PolicyResult& result) {
    return std::pair(result.schedule.makespan, std::ranges::find(kSimplest, result.policy));
  };
  return std::ranges::min_element(results, {}, key) - results.begin();
}

}  // namespace convoy::partition::sharing
