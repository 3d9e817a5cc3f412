// Compares simulations of clients (jobs that share a device) with schedules worked out by hand and
// with a simple recursion. Checks that schedules of random clients are valid.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "partition/sharing/client_simulator.h"
#include "partition/sharing/policies.h"
#include "tests/partition/sharing/workloads.h"

namespace convoy::partition::sharing {
namespace {

using testing::Given;
using testing::ns;
using testing::workload_of;

struct Case {
  const char* what;
  std::vector<Given> clients;
  SharedDeviceSpec device;
  Prefetch prefetch;
  double makespan;  // expected makespan in µs; the clients come in the given order
  Bytes swapped = 0;
};

constexpr Prefetch kOff = Prefetch::kOff, kOn = Prefetch::kOn;
constexpr EvictionPolicy kNever = EvictionPolicy::kOff, kWhole = EvictionPolicy::kWhole,
                         kPartial = EvictionPolicy::kPartial;
constexpr Bytes kNoLimit = kUnlimited;

// The comment above a case gives its schedule: when each client (a, b, c) is copied, runs and is
// copied back, in µs.
const std::vector<Case>& cases() {
  static const std::vector<Given> thesis = {{62.5, {500}}, {5, {500}}, {120, {500}}, {187.5, {500}}};
  static const Given sleeper{2, {4, 4}, {20}, 3, 8}, short_sleeper{2, {4, 4}, {4}, 3, 8},
      reader{2, {4, 4}, {20}, 0, 8}, guest{1, {5}, {}, 0, 6};
  static const std::vector<Given> swappers = {{50, {100, 100}, {300}, 50, 10},
                                              {50, {100, 100}, {300}, 50, 10}};
  static const std::vector<Case> all = {
      // No client is copied before the previous one has ended: 62.5 + 500 + 5 + 500 + 120 + 500 +
      // 187.5 + 500 µs.
      {"four, one after the other", thesis, {}, kOff, 2375},
      // Copies end at 62.5, 67.5, 187.5 and 375, each before the previous kernel ends. So the four
      // kernels run without a break: 62.5 + 4 × 500 µs.
      {"four, copies hidden", thesis, {}, kOn, 2062.5},
      {"alone", {{3, {5}, {}, 2}}, {}, kOn, 10},
      {"alone, without prefetching", {{3, {5}, {}, 2}}, {}, kOff, 10},
      {"nothing takes time", {{0, {0}}, {0, {0, 0}, {0}}}, {}, kOn, 0},
      // In µs: a is copied 0-4 and runs 4-10; b is copied 4-8 and runs 10-16.
      {"kernels are longer than copies", {{4, {6}}, {4, {6}}}, {}, kOn, 16},
      // In µs: the copies take 0-10, 10-20 and 20-30; the last kernel runs 30-31.
      {"copies are longer than kernels", {{10, {1}}, {10, {1}}, {10, {1}}}, {}, kOn, 31},
      // In µs: a is copied 0-2, runs 2-5, is copied back 5-9; b is copied 2-4, runs 5-8, is copied
      // back 9-13.
      {"copies back wait for each other", {{2, {3}, {}, 4}, {2, {3}, {}, 4}}, {}, kOn, 13},
      {"copies back are not hidden without prefetching", {{2, {3}, {}, 4}, {2, {3}, {}, 4}}, {}, kOff, 18},
      // In µs: a is copied 0-1 and runs 1-5 and 10-14; b is copied 1-2 and runs 5-10.
      {"a gap is filled", {{1, {4, 4}, {5}}, {1, {5}}}, {}, kOn, 14},
      // In µs: a is copied 0-1, runs 1-5, is ready again at 8, runs 10-14; b is copied 1-2 and runs
      // 5-10.
      {"a kernel is not interrupted", {{1, {4, 4}, {3}}, {1, {5}}}, {}, kOn, 14},
      // In µs: a runs 1-11 on engine 0, b 2-12 on engine 1, c 11-21 on engine 0.
      {"two engines", {{1, {10}}, {1, {10}}, {1, {10}}}, {2}, kOn, 21},
      // In µs: a is copied 0-2 and runs 2-12; b is copied 2-4 and runs 4-14. c must wait until a
      // has ended: it is copied 12-14 and runs 14-24.
      {"two engines, without prefetching", {{2, {10}}, {2, {10}}, {2, {10}}}, {2}, kOff, 24},
      // In µs: a is copied 0-2 and runs 2-7; b is copied 7-9 and runs 9-14.
      {"memory for one", {{2, {5}, {}, 0, 6}, {2, {5}, {}, 0, 6}}, {1, 10}, kOn, 14},
      // In µs: a is copied 0-2, runs 2-7, is copied back 7-10; b is copied 10-12, runs 12-17, is
      // copied back 17-20.
      {"memory is kept until the copy back ends", {{2, {5}, {}, 3, 6}, {2, {5}, {}, 3, 6}}, {1, 10}, kOn, 20},
      {"the same, enough memory", {{2, {5}, {}, 3, 6}, {2, {5}, {}, 3, 6}}, {1, 12}, kOn, 15},
      // In µs: a is copied 0-2 and runs 2-10. b lacks 2 bytes until then: it is copied 10-12 and
      // runs 12-13. c would fit, but must not overtake b: it is copied 12-13 and runs 13-14.
      {"no overtaking", {{2, {8}, {}, 0, 6}, {2, {1}, {}, 0, 6}, {1, {1}, {}, 0, 2}}, {1, 10}, kOn, 14},
      // In µs: a arrives at 10, is copied 10-11 and runs 11-13; b is copied 11-14 and runs 14-18.
      {"the order waits for an arrival", {{1, {2}, {}, 0, 0, 10}, {3, {4}}}, {}, kOn, 18},
      // In µs: a is copied 0-2, runs 2-6 and 26-30, is copied back 30-33; b is copied 33-34 and
      // runs 34-39.
      {"no eviction", {sleeper, guest}, {1, 10, kNever}, kOn, 39},
      // In µs: a is evicted 6-9; b is copied 9-10 and runs 10-15; a returns 24-26.
      {"eviction of a whole client", {sleeper, guest}, {1, 10, kWhole}, kOn, 33, 8},
      // In µs: 4 of the 8 bytes of a are evicted 6-7.5; b is copied 7.5-8.5 and runs 8.5-13.5; the
      // bytes of a return 25-26.
      {"eviction of a part", {sleeper, guest}, {1, 10, kPartial}, kOn, 33, 4},
      // To evict a and bring it back takes 5 µs, but its gap lasts 4 µs, so it stays. In µs: a runs
      // 2-6 and 10-14, is copied back 14-17; b is copied 17-18 and runs 18-23.
      {"a gap too short to be evicted in", {short_sleeper, guest}, {1, 10, kWhole}, kOn, 23},
      // In µs: half of a is evicted 6-7.5; b is copied 7.5-8.5 and runs 8.5-13.5. Only then a
      // returns 13.5-14.5, runs 14.5-18.5, and is copied back 18.5-21.5.
      {"a part fits into a shorter gap", {short_sleeper, guest}, {1, 10, kPartial}, kOn, 21.5, 4},
      // In µs: a has no copy back, so it is dropped at 6; b is copied 6-7 and runs 7-12; a returns
      // 24-26 and runs 26-30.
      {"what need not be kept is dropped", {reader, guest}, {1, 10, kWhole}, kOn, 30, 8},
      // In µs: a is copied 0-50, runs 50-150, is evicted 150-200. b is copied 200-250, runs
      // 250-350, is evicted 400-450. a returns 450-500, runs 500-600, is copied back 600-650. b
      // returns 650-700, runs 700-800, is copied back 800-850.
      {"two take turns", swappers, {1, 10, kWhole}, kOn, 850, 20},
  };
  return all;
}

Order as_given(const Workload& workload) {
  Order order(workload.count());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(SharingSimulator, EqualsSchedulesWorkedOutByHand) {
  static_assert(kNoLimit == SharedDeviceSpec{}.memory);
  for (const Case& given : cases()) {
    const Workload workload = workload_of(given.clients, given.device);
    const ClientSchedule schedule = simulate(workload, as_given(workload), given.prefetch);
    EXPECT_EQ(schedule.makespan, ns(given.makespan)) << given.what;
    EXPECT_EQ(schedule.swapped_bytes, given.swapped) << given.what;
  }
}

// In µs: client a runs 1-3 on engine 0, and b 2-12 on engine 1. While a is idle, c runs on engine
// 0, 3-6. Then a runs there again, 6-8.
TEST(SharingSimulator, CountsTheWorkOfEveryEngine) {
  const Workload workload = workload_of({{1, {2, 2}, {1}}, {1, {10}}, {1, {3}, {}, 2}}, {2});
  const ClientSchedule schedule = simulate(workload, as_given(workload), Prefetch::kOn);
  EXPECT_EQ(schedule.compute_busy, (std::vector<Nanoseconds>{ns(7), ns(10)}));
  EXPECT_EQ(schedule.copy_in_busy, ns(3));
  EXPECT_EQ(schedule.copy_back_busy, ns(2));
  EXPECT_EQ(schedule.makespan, ns(12));
  EXPECT_EQ(schedule.order, as_given(workload));
}

TEST(SharingSimulator, MemoryHasAPeakAndACurve) {
  const Workload workload = workload_of({{2, {4, 4}, {20}, 3, 8}, {1, {5}, {}, 0, 6}}, {1, 10});
  const ClientSchedule schedule = simulate(workload, as_given(workload), Prefetch::kOn, Detail::kAll);
  EXPECT_EQ(schedule.peak_bytes, 10);
  std::vector<std::pair<Nanoseconds, Bytes>> curve;
  for (const MemorySample& sample : schedule.memory) curve.emplace_back(sample.time, sample.bytes);
  EXPECT_EQ(curve, (std::vector<std::pair<Nanoseconds, Bytes>>{
                       {0, 8}, {ns(7.5), 10}, {ns(13.5), 4}, {ns(25), 8}, {ns(33), 0}}));
}

// Computes the makespan by a recursion over the clients. Valid for one compute engine, one kernel
// per client and no eviction: then every engine serves the clients in their order.
Nanoseconds makespan_by_recursion(const Workload& workload, const Order& order) {
  Nanoseconds copied = 0, computed = 0, copied_back = 0, makespan = 0;
  std::map<Nanoseconds, Bytes> given_back;  // bytes that become free, by time
  for (const ClientIndex index : order) {
    const Client& client = workload.client(index);
    Nanoseconds start = std::max(copied, client.arrival);
    Bytes used = 0;
    for (const auto& [time, bytes] : given_back) used += time > start ? bytes : 0;
    for (auto at = given_back.upper_bound(start); used + client.bytes > workload.device().memory; ++at)
      start = at->first, used -= at->second;
    copied = start + client.copy_in;
    computed = std::max(computed, copied) + client.kernels[0];
    if (client.copy_back > 0) copied_back = std::max(copied_back, computed) + client.copy_back;
    const Nanoseconds left = client.copy_back > 0 ? copied_back : computed;
    given_back[left] += client.bytes;
    makespan = std::max(makespan, left);
  }
  return makespan;
}

TEST(SharingSimulator, AgreesWithARecursionOnSimpleClients) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SharedDeviceSpec device;
    if (seed % 2 == 0) device.memory = 100'000 + static_cast<Bytes>(seed) * 300;
    const Workload workload = testing::random_workload(
        seed, {.clients = 12, .back = seed % 3 == 0 ? 0 : 80, .arrival = seed % 5 == 0 ? 300 : 0}, device);
    const Order order = as_given(workload);
    ASSERT_EQ(simulate(workload, order, Prefetch::kOn).makespan, makespan_by_recursion(workload, order))
        << "seed " << seed;
  }
}

// Checks the rules that every schedule must keep, from its intervals (periods of work) alone.
class Checker {
 public:
  Checker(const Workload& workload, const ClientSchedule& schedule)
      : workload_(workload), schedule_(schedule) {}

  void check() {
    no_engine_does_two_things();
    for (ClientIndex client = 0; client < workload_.count(); ++client) one_client(client);
    memory_is_kept();
    Nanoseconds last = 0;
    for (const EngineInterval& interval : schedule_.intervals) last = std::max(last, interval.end);
    EXPECT_EQ(schedule_.makespan, last);
  }

 private:
  void no_engine_does_two_things() {
    std::map<std::pair<int, int>, Nanoseconds> free;
    Nanoseconds previous = 0;
    for (const EngineInterval& interval : schedule_.intervals) {
      const int kind = interval.task == EngineTask::kKernel                                           ? 0
                       : interval.task == EngineTask::kCopyIn || interval.task == EngineTask::kReturn ? 1
                                                                                                      : 2;
      Nanoseconds& until = free[{kind, interval.engine}];
      ASSERT_GE(interval.start, until);
      ASSERT_GE(interval.start, previous) << "intervals are sorted by their start";
      ASSERT_LT(interval.engine, workload_.device().compute_engines);
      until = interval.end, previous = interval.start;
    }
  }

  // Checks that a client has a copy in, kernels with at least the given gaps between them, and a
  // copy back. Evicted bytes must return before the next kernel.
  void one_client(ClientIndex client) {
    const Client& given = workload_.client(client);
    next_ = 0, ready_ = given.arrival, resident_ = -1, gone_ = false;
    for (const EngineInterval& interval : schedule_.intervals) {
      if (interval.client != client || ::testing::Test::HasFatalFailure()) continue;
      ASSERT_FALSE(gone_);
      if (interval.task == EngineTask::kKernel)
        kernel(interval, given);
      else
        copy(interval, given);
    }
    EXPECT_EQ(next_, std::ssize(given.kernels));
    EXPECT_EQ(gone_, given.copy_back > 0);
  }
  void kernel(const EngineInterval& interval, const Client& given) {
    ASSERT_EQ(resident_, given.bytes) << "a kernel without its data";
    ASSERT_GE(interval.start, ready_);
    ASSERT_EQ(interval.kernel, next_);
    ASSERT_EQ(interval.end - interval.start, given.kernels[next_]);
    ready_ = interval.end + (++next_ < std::ssize(given.kernels) ? given.idle[next_ - 1] : 0);
    kernel_end_ = interval.end;
  }
  void copy(const EngineInterval& interval, const Client& given) {
    if (interval.task == EngineTask::kCopyIn) {
      ASSERT_EQ(resident_, -1);
      ASSERT_GE(interval.start, given.arrival);
      resident_ = interval.bytes, ready_ = interval.end;
      return;
    }
    ASSERT_GE(interval.start, kernel_end_);
    if (interval.task == EngineTask::kReturn) {
      // The eviction of a client without a copy back takes no time, so it has no interval.
      resident_ = given.copy_back == 0 ? given.bytes : resident_ + interval.bytes;
      ready_ = std::max(ready_, interval.end);
    } else if (interval.task == EngineTask::kEvict) {
      ASSERT_LT(next_, std::ssize(given.kernels));
      resident_ -= interval.bytes;
    } else {
      ASSERT_EQ(next_, std::ssize(given.kernels));
      gone_ = true;
    }
  }

  void memory_is_kept() {
    for (const MemorySample& sample : schedule_.memory) {
      ASSERT_GE(sample.bytes, 0);
      ASSERT_LE(sample.bytes, workload_.device().memory);
    }
    EXPECT_EQ(schedule_.memory.empty() ? 0 : schedule_.memory.back().bytes, 0);
  }

  const Workload& workload_;
  const ClientSchedule& schedule_;
  // The members below describe the client that one_client() is checking.
  std::int32_t next_ = 0;
  Nanoseconds ready_ = 0, kernel_end_ = 0;
  Bytes resident_ = -1;  // bytes on the device; -1 before the first copy
  bool gone_ = false;
};

TEST(SharingSimulator, SchedulesOfAnyClientsAreValid) {
  Bytes swapped = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SharedDeviceSpec device{.compute_engines = 1 + static_cast<std::int32_t>(seed % 3)};
    device.memory = 100'000 + static_cast<Bytes>(seed % 7) * 20'000;
    device.eviction = seed % 5 == 0   ? EvictionPolicy::kOff
                      : seed % 2 == 0 ? EvictionPolicy::kWhole
                                      : EvictionPolicy::kPartial;
    const Workload workload = testing::random_workload(seed,
                                                       {.clients = 2 + static_cast<ClientIndex>(seed % 11),
                                                        .copy = 100,
                                                        .kernel = 60,
                                                        .back = seed % 4 == 0 ? 0 : 60,
                                                        .idle = 800,
                                                        .arrival = seed % 3 == 0 ? 500 : 0,
                                                        .kernels = 6},
                                                       device);
    const Prefetch prefetch = seed % 13 == 0 ? Prefetch::kOff : Prefetch::kOn;
    const ClientSchedule schedule = simulate(workload, as_given(workload), prefetch, Detail::kAll);
    Checker(workload, schedule).check();
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    ASSERT_TRUE(device.eviction != EvictionPolicy::kOff || schedule.swapped_bytes == 0) << "seed " << seed;
    ASSERT_LE(schedule.peak_bytes, device.memory) << "seed " << seed;
    swapped += schedule.swapped_bytes;
  }
  EXPECT_GT(swapped, 10'000'000) << "evictions are rare in these workloads, they show nothing";
}

}  // namespace
}  // namespace convoy::partition::sharing
