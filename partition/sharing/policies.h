// Policies: in which order clients come. All but `none` bring the next client's data while others
// compute.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "partition/sharing/simulator.h"

namespace convoy::partition::sharing {

enum class Policy {
  kNone,     // first come, without prefetching
  kFifo,     // first come; ties by the order of the file
  kWeight,   // order_by_weight()
  kJohnson,  // the shorter of orders_by_johnson()
  kGenetic,  // genetic.h
  kExact,    // exact.h
};
inline constexpr std::array kAllPolicies = {Policy::kNone,    Policy::kFifo,    Policy::kWeight,
                                            Policy::kJohnson, Policy::kGenetic, Policy::kExact};
std::string_view policy_name(Policy policy);
std::optional<Policy> policy_from(std::string_view name);

using Order = std::vector<ClientIndex>;

Order order_by_arrival(const Workload& workload);

// Takes the waiting client of highest weight and that of lowest weight in turn, among the first
// `window` in order of arrival. A weight is the time of a client's kernels, as a share of all time
// of kernels and gaps in the window, divided by the time of its copy. If weights are equal, the
// smaller copy goes first, then the earlier client. A client waits from its arrival; the clock only
// advances by copies.
Order order_by_weight(const Workload& workload, std::int32_t window);

// Johnson's rule on copies and kernels (kernels divided by the compute engines), and, if a client
// copies back, on copies plus kernels and kernels plus copies back, which is best if the kernels
// are short (Johnson 1954). It picks among the clients that have arrived by the clock of copies
// alone. Without arrivals, limits, gaps and copies back, and with one compute engine, no order is
// shorter.
std::vector<Order> orders_by_johnson(const Workload& workload);

struct PolicyOptions {
  std::uint64_t seed = 1;
  std::optional<std::chrono::duration<double>> time_limit;  // default: 1 s for genetic, none for exact
  std::int32_t window = 16;                                 // of the weight rule
};

struct PolicyResult {
  Policy policy = Policy::kFifo;
  Schedule schedule;     // without slices
  bool optimal = false;  // no order is shorter: the bound was reached, or all was searched
  double seconds = 0;
};

// Throws std::runtime_error for kExact with more than kMostExactClients.
PolicyResult run_policy(const Workload& workload, Policy policy, const PolicyOptions& options,
                        Nanoseconds bound);

// Which of the results is the shortest; of equal ones that of the simplest policy. First come being
// among them, no policy that is worse is chosen.
std::size_t shortest(const std::vector<PolicyResult>& results);

Prefetch prefetch_of(Policy policy);

}  // namespace convoy::partition::sharing
