// Tests how the policies order clients (jobs that share a device). The simple rules must give the
// orders that were worked out by hand. The exact search must find the best of all orders, and the
// genetic search must come within 1 % of it. No order may be faster than the lower bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <stdexcept>

#include "partition/sharing/bound.h"
#include "partition/sharing/exact_order.h"
#include "partition/sharing/genetic.h"
#include "partition/sharing/policies.h"
#include "tests/partition/sharing/workloads.h"

namespace convoy::partition::sharing {
namespace {

using testing::ns;
using testing::random_workload;
using testing::workload_of;

Nanoseconds makespan_of(const Workload& workload, const Order& order) {
  return simulate(workload, order, Prefetch::kOn).makespan;
}

Nanoseconds best_of_all_orders(const Workload& workload) {
  Order order(workload.count());
  std::iota(order.begin(), order.end(), 0);
  Nanoseconds best = makespan_of(workload, order);
  while (std::next_permutation(order.begin(), order.end()))
    best = std::min(best, makespan_of(workload, order));
  return best;
}

PolicyResult result_of(const Workload& workload, Policy policy, std::int32_t window = 16) {
  PolicyOptions options;
  options.window = window;
  return run_policy(workload, policy, options, Bound(workload).at_start());
}

TEST(SharingPolicies, TheFourClientsOfThePaper) {
  const Workload workload = workload_of({{62.5, {500}}, {5, {500}}, {120, {500}}, {187.5, {500}}});
  EXPECT_EQ(result_of(workload, Policy::kNone).schedule.makespan, ns(2375));
  EXPECT_EQ(result_of(workload, Policy::kFifo).schedule.makespan, ns(2062.5));
  for (const Policy policy : {Policy::kWeight, Policy::kJohnson, Policy::kGenetic, Policy::kExact}) {
    const PolicyResult result = result_of(workload, policy);
    EXPECT_EQ(result.schedule.makespan, ns(2005)) << policy_name(policy);
    EXPECT_TRUE(result.optimal) << policy_name(policy);
  }
  EXPECT_EQ(result_of(workload, Policy::kWeight).schedule.order, (Order{1, 3, 0, 2}));
}

TEST(SharingPolicies, WeightTakesTheHighestAndTheLowestInTurn) {
  // The clients' weights (kernel time / copy time) are 8, 2, 4 and 1.
  const Workload workload = workload_of({{1, {8}}, {4, {8}}, {2, {8}}, {8, {8}}});
  EXPECT_EQ(order_by_weight(workload, 16), (Order{0, 3, 2, 1}));
  // With a window of 2, the choice is among clients {0, 1}, then {1, 2}, {2, 3} and {3}.
  EXPECT_EQ(order_by_weight(workload, 2), (Order{0, 1, 2, 3}));
  EXPECT_EQ(order_by_weight(workload, 1), (Order{0, 1, 2, 3}));
}

TEST(SharingPolicies, OfEqualWeightsTheSmallerCopyIsFirst) {
  // All weights are equal, so the smaller copy goes first. A client without a copy weighs most.
  EXPECT_EQ(order_by_weight(workload_of({{4, {8}}, {2, {4}}, {3, {6}}}), 16), (Order{1, 2, 0}));
  EXPECT_EQ(order_by_weight(workload_of({{4, {8}}, {0, {0}}, {2, {4}}}), 16), (Order{1, 2, 0}));
}

TEST(SharingPolicies, WeightCountsAllKernelsOfAClient) {
  EXPECT_EQ(order_by_weight(workload_of({{2, {5}}, {2, {3, 3}, {100}}}), 16), (Order{1, 0}));
}

// The second client would be the best choice, but it arrives only while the first is copied.
TEST(SharingPolicies, RulesTakeOnlyClientsThatHaveArrived) {
  const Workload workload = workload_of({{6, {2}}, {1, {9}, {}, 0, 0, 5}, {2, {1}, {}, 0, 0, 3}});
  EXPECT_EQ(order_by_arrival(workload), (Order{0, 2, 1}));
  EXPECT_EQ(orders_by_johnson(workload).front(), (Order{0, 1, 2}));
  // Only client 0 has arrived at first. Then client 2, which has the lowest weight, is taken.
  EXPECT_EQ(order_by_weight(workload, 16), (Order{0, 2, 1}));
}

TEST(SharingPolicies, JohnsonsTwoRules) {
  // Johnson's rule: clients whose copies are shorter than their kernels come first, by rising copy
  // time. The others follow by falling kernel time.
  const Workload two = workload_of({{5, {2}}, {1, {6}}, {9, {7}}, {3, {8}}, {10, {4}}});
  EXPECT_EQ(orders_by_johnson(two), (std::vector<Order>{{1, 3, 2, 4, 0}}));
  // With two engines kernels count half. So (copy, kernel) are (5, 2), (1, 3), (9, 3.5), (3, 4),
  // (10, 2).
  EXPECT_EQ(orders_by_johnson(workload_of({{5, {4}}, {1, {6}}, {9, {7}}, {3, {8}}, {10, {4}}}, {2})).front(),
            (Order{1, 3, 2, 0, 4}));
  // The second rule, Johnson's for three machines, gives the best order here. It applies Johnson's
  // rule to (copy + kernel, kernel + copy back): (3 + 1, 1 + 6), (4 + 2, 2 + 3), (5 + 1, 1 + 8).
  const Workload three = workload_of({{3, {1}, {}, 6}, {4, {2}, {}, 3}, {5, {1}, {}, 8}});
  EXPECT_EQ(orders_by_johnson(three).back(), (Order{0, 2, 1}));
  EXPECT_EQ(result_of(three, Policy::kJohnson).schedule.makespan, best_of_all_orders(three));
}

TEST(SharingPolicies, JohnsonsRuleIsTheBestWithUnlimitedMemory) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Workload workload = random_workload(seed, {.clients = 1 + static_cast<ClientIndex>(seed % 6),
                                                     .copy = 5 + static_cast<std::int64_t>(seed % 40),
                                                     .kernel = 10,
                                                     .kernels = 1 + static_cast<std::int64_t>(seed % 3)});
    const Nanoseconds johnson = result_of(workload, Policy::kJohnson).schedule.makespan;
    ASSERT_EQ(johnson, best_of_all_orders(workload)) << "seed " << seed;
    ASSERT_EQ(johnson, result_of(workload, Policy::kExact).schedule.makespan) << "seed " << seed;
    ASSERT_EQ(johnson, Bound(workload).at_start()) << "seed " << seed;
  }
}

// Returns a small workload. Over the seeds, it varies engines, memory, eviction, copies back, gaps,
// arrivals and the number of kernels.
Workload crowded(std::uint64_t seed, ClientIndex clients) {
  SharedDeviceSpec device{.compute_engines = 1 + static_cast<std::int32_t>(seed % 3 == 0)};
  if (seed % 4 != 0) device.memory = 50'000 + static_cast<Bytes>(seed % 5) * 30'000;
  device.eviction = seed % 2 == 0 ? EvictionPolicy::kWhole : EvictionPolicy::kPartial;
  return random_workload(seed,
                         {.clients = clients,
                          .copy = 50,
                          .kernel = 60,
                          .back = seed % 5 == 0 ? 0 : 40,
                          .idle = seed % 6 == 0 ? 200 : 0,
                          .arrival = seed % 7 == 0 ? 200 : 0,
                          .kernels = 1 + static_cast<std::int64_t>(seed % 3)},
                         device);
}

TEST(SharingPolicies, ExactIsTheBestOfAllOrders) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Workload workload = crowded(seed, 1 + static_cast<ClientIndex>(seed % 6));
    const ExactOrder exact = search_exactly(workload, {order_by_arrival(workload)}, std::chrono::hours(1));
    ASSERT_TRUE(exact.complete);
    ASSERT_EQ(makespan_of(workload, exact.order), best_of_all_orders(workload)) << "seed " << seed;
  }
}

TEST(SharingPolicies, NoScheduleIsShorterThanTheBound) {
  double ratios = 0;
  int limited = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Workload workload = crowded(seed, 1 + static_cast<ClientIndex>(seed % 6));
    const Nanoseconds bound = Bound(workload).at_start(), best = best_of_all_orders(workload);
    ASSERT_LE(bound, best) << "seed " << seed;
    ASSERT_LE(bound, result_of(workload, Policy::kNone).schedule.makespan) << "seed " << seed;
    if (best > 0) ratios += static_cast<double>(bound) / static_cast<double>(best), ++limited;
  }
  EXPECT_GT(ratios / limited, 0.95) << "a bound far below the best order says little";
}

// Bound returns the largest of several lower bounds. In each case below, the one that the message
// names is the largest.
TEST(SharingPolicies, TheBoundKnowsEveryEngineAndTheMemory) {
  const auto bound = [](const std::vector<testing::Given>& given, SharedDeviceSpec device = {}) {
    return Bound(workload_of(given, device)).at_start();
  };
  EXPECT_EQ(bound({{1, {9}, {}, 2}, {3, {9}, {}, 4}}), ns(1 + 18 + 2)) << "kernels";
  EXPECT_EQ(bound({{1, {9}}, {0, {9}}, {0, {8}}, {0, {10}}}, {3}), ns(12)) << "three engines";
  EXPECT_EQ(bound({{9, {1}, {}, 2}, {9, {3}, {}, 2}}), ns(18 + 1 + 2)) << "copies";
  EXPECT_EQ(bound({{1, {1}, {}, 9}, {2, {1}, {}, 9}}), ns(2 + 18)) << "copies back";
  EXPECT_EQ(bound({{2, {3}, {}, 4, 6}, {2, {3}, {}, 4, 6}}, {1, 10}), ns(18)) << "clients exclude each other";
  EXPECT_EQ(bound(std::vector<testing::Given>(4, {1, {9}, {}, 1, 5}), {3, 10}), ns(22) - 1) << "bytes × time";
  EXPECT_EQ(bound({{2, {3, 3}, {7}, 4, 0, 5}}), ns(5 + 19)) << "one client's own path";
  EXPECT_EQ(bound({{1, {5}, {}, 0, 0, 10}, {1, {5}, {}, 0, 0, 10}}), ns(10 + 1 + 10)) << "late arrivals";
}

TEST(SharingPolicies, GeneticIsWithinOnePercentOfTheBestUnderALimit) {
  const std::clock_t began = std::clock();
  Nanoseconds genetic_sum = 0, fifo_sum = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SharedDeviceSpec device{.memory = 100'000 + static_cast<Bytes>(seed % 5) * 40'000};
    const Workload workload =
        random_workload(seed, {.clients = 8, .back = seed % 2 == 0 ? 100 : 0, .kernels = 2}, device);
    const Nanoseconds best = result_of(workload, Policy::kExact).schedule.makespan;
    // Gives the search far more time than it needs, so that the result does not depend on the
    // machine's load.
    const GeneticLimits limits{.seed = seed, .time = std::chrono::hours(1)};
    const Order order = search_genetically(workload, {order_by_arrival(workload)}, limits);
    const Nanoseconds genetic = makespan_of(workload, order);
    ASSERT_LE(static_cast<double>(genetic), 1.01 * static_cast<double>(best)) << "seed " << seed;
    ASSERT_GE(genetic, best) << "seed " << seed;
    genetic_sum += genetic, fifo_sum += makespan_of(workload, order_by_arrival(workload));
  }
  EXPECT_LT(genetic_sum, 0.95 * static_cast<double>(fifo_sum)) << "first come is as good here";
  EXPECT_LT(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC, 200) << "more than a second each";
}

TEST(SharingPolicies, GeneticRepeatsItselfAndKeepsItsTime) {
  const Workload workload =
      random_workload(3, {.clients = 20, .back = 90, .kernels = 3}, {.memory = 150'000});
  const auto search = [&](std::uint64_t seed, double seconds) {
    return search_genetically(workload, {order_by_arrival(workload)},
                              {.seed = seed, .time = std::chrono::duration<double>(seconds)});
  };
  constexpr double kHour = 3600;
  const Order found = search(1, kHour);
  EXPECT_EQ(search(1, kHour), found);
  EXPECT_NE(search(2, kHour), found);
  EXPECT_EQ(search(1, 0), order_by_arrival(workload)) << "no time: the shortest of the given orders";
}

TEST(SharingPolicies, NothingWorseThanFirstComeIsChosen) {
  int others = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Workload workload = crowded(seed, 1 + static_cast<ClientIndex>(seed % 7));
    std::vector<PolicyResult> results;
    for (const Policy policy : {Policy::kNone, Policy::kWeight, Policy::kJohnson, Policy::kFifo})
      results.push_back(result_of(workload, policy));
    const PolicyResult& chosen = results[shortest(results)];
    for (const PolicyResult& result : results)
      ASSERT_LE(chosen.schedule.makespan, result.schedule.makespan) << "seed " << seed;
    ASSERT_EQ(chosen.policy == Policy::kFifo, chosen.schedule.makespan == results.back().schedule.makespan)
        << "of equal ones the simplest, seed " << seed;
    others += chosen.policy != Policy::kFifo;
  }
  EXPECT_GT(others, 100);
}

TEST(SharingPolicies, ExactRefusesManyClients) {
  try {
    result_of(random_workload(1, {.clients = 10}), Policy::kExact);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "exact: found 10 clients, expected at most 9");
  }
}

TEST(SharingPolicies, ExactSaysThatItsTimeIsUp) {
  const Workload workload = random_workload(5, {.clients = 9, .back = 100}, {.memory = 120'000});
  EXPECT_FALSE(search_exactly(workload, {order_by_arrival(workload)}, std::chrono::seconds(0)).complete);
}

TEST(SharingPolicies, TenThousandClientsTakeSeconds) {
  const std::clock_t began = std::clock();
  for (const bool limited : {false, true}) {
    SharedDeviceSpec device;
    if (limited) device.memory = 200'000;
    const Workload workload = random_workload(
        1, {.clients = 10'000, .back = 50, .idle = limited ? 500 : 0, .arrival = 100, .kernels = 3}, device);
    const Nanoseconds bound = Bound(workload).at_start();
    for (const Policy policy : {Policy::kNone, Policy::kFifo, Policy::kWeight, Policy::kJohnson})
      EXPECT_GE(run_policy(workload, policy, {}, bound).schedule.makespan, bound) << policy_name(policy);
  }
  EXPECT_LT(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC, 2.5);
}

}  // namespace
}  // namespace convoy::partition::sharing
