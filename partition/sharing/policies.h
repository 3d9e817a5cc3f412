// Policies decide in which order clients come. With all policies except kNone, the data of the next
// client is copied while others compute.
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
  kNone,     // first come, without prefetching
  kFifo,     // first come; ties by the order of the file
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

// Takes in turn the client of highest and of lowest weight among the first `window` clients that
// have arrived. A client's weight is its kernel time, as a share of all kernels and gaps in the
// window, divided by its copy time. Of equal weights, the smaller copy goes first, then the earlier
// client.
// The clock that decides who has arrived counts only copies.
Order order_by_weight(const Workload& workload, std::int32_t window);

// Returns orders by Johnson's rule (1954; johnson.h), which needs two machines that every client
// visits. In the first order they are the copy engine and the compute engines. A second order, made
// if any client copies back, takes copy plus kernels and kernels plus copy back. It is best if
// kernels are short.
// The rule picks among clients that have arrived, by a clock that counts only copies. With one
// compute engine and without arrivals, limits, gaps and copies back, no order is shorter.
std::vector<Order> orders_by_johnson(const Workload& workload);

struct PolicyOptions {
  std::uint64_t seed = 1;
  std::optional<std::chrono::duration<double>> time_limit;  // default: 1 s for genetic, none for exact
  std::int32_t window = 16;                                 // window of order_by_weight()
};

struct PolicyResult {
  Policy policy = Policy::kFifo;
  Schedule schedule;     // the policy's schedule; `slices` is empty
  bool optimal = false;  // whether no order is shorter, by the bound or by search of all orders
  double seconds = 0;
};

// Throws std::runtime_error for kExact with more than kMostExactClients.
PolicyResult run_policy(const Workload& workload, Policy policy, const PolicyOptions& options,
                        Nanoseconds bound);

// Returns the index of the shortest result. If several are equal, it is that of the simplest
// policy. Results should contain kFifo, so that the choice is never worse than first come.
std::size_t shortest(const std::vector<PolicyResult>& results);

Prefetch prefetch_of(Policy policy);

}  // namespace convoy::partition::sharing
