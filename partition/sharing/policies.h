// Policies choose the order in which clients use the device. With all policies except kNone, the
// data of the next client are copied to the device while other clients compute (prefetching).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "partition/sharing/client_simulator.h"

namespace convoy::partition::sharing {

enum class Policy {
  kNone,     // first come, first served, without prefetching
  kFifo,     // first come, first served; of equal arrivals, the lowest index first
  kWeight,   // order_by_weight()
  kJohnson,  // the shorter of orders_by_johnson()
  kGenetic,  // genetic.h
  kExact,    // exact_order.h
};
inline constexpr std::array kAllPolicies = {Policy::kNone,    Policy::kFifo,    Policy::kWeight,
                                            Policy::kJohnson, Policy::kGenetic, Policy::kExact};
std::string_view policy_name(Policy policy);
std::optional<Policy> policy_from(std::string_view name);

using Order = std::vector<ClientIndex>;

Order order_by_arrival(const Workload& workload);

// Alternates between the client of highest weight and the client of lowest weight, among the first
// `window` clients that have arrived. The weight of a client is its kernel time, as a fraction of
// all kernels and gaps in the window, divided by its copy time. Of equal weights, the client with
// the smaller copy comes first, then the earlier one. The clock that decides who has arrived counts
// only copies.
Order order_by_weight(const Workload& workload, std::int32_t window);

// Returns orders by Johnson's rule (1954; johnson.h), which needs two machines that every client
// visits. For the first order, they are the copy engine and the compute engines. If any client
// copies results back, there is a second order, which is best for short kernels. For it, a client's
// times on the two machines are copy plus kernels, and kernels plus copy back.
//
// The rule chooses among clients that have arrived, by a clock that counts only copies. With one
// compute engine and without arrivals, memory limits, gaps and copies back, no order is shorter
// than the first.
std::vector<Order> orders_by_johnson(const Workload& workload);

struct PolicyOptions {
  std::uint64_t seed = 1;
  std::optional<std::chrono::duration<double>> time_limit;  // null: 1 s for genetic, no limit for exact
  std::int32_t window = 16;                                 // window of order_by_weight()
};

struct PolicyResult {
  Policy policy = Policy::kFifo;
  ClientSchedule schedule;  // schedule by this policy; `intervals` is empty
  bool optimal = false;     // whether no order is shorter: the bound or a complete search proves it
  double seconds = 0;
};

// Throws std::runtime_error for kExact with more than kMostExactClients.
PolicyResult run_policy(const Workload& workload, Policy policy, const PolicyOptions& options,
                        Nanoseconds bound);

// Returns the index of the shortest result. If several are equal, takes the simplest policy.
// `results` should contain kFifo, so that the choice is never worse than first come, first served.
std::size_t shortest(const std::vector<PolicyResult>& results);

Prefetch prefetch_of(Policy policy);

}  // namespace convoy::partition::sharing
