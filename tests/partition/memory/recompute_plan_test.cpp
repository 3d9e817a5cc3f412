// Compares the planner of recomputation with an exhaustive search on small chains, and with
// expected times on networks with residual blocks and dense blocks.
#include "partition/memory/recompute_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <queue>
#include <stdexcept>
#include <tuple>

#include "partition/memory/recompute_baselines.h"
#include "partition/random.h"
#include "tests/partition/memory/step_nets.h"

namespace convoy::partition {
namespace {

// A chain of operations t0 = f0(), t1 = f1(t0), … and a loss. The backward of an operation reads
// its input and, if `reads_output`, its output.
struct Chain {
  StepModel model;
  int length = 0;
  std::vector<int> gradient;  // gradient[i] is the gradient of t_i
};

Chain random_chain(int length, std::uint64_t seed) {
  Random random(seed);
  Chain chain;
  chain.length = length;
  StepModel& model = chain.model;
  const auto tensor = [&](std::int64_t bytes) {
    model.tensor_bytes.push_back(bytes);
    return static_cast<int>(std::ssize(model.tensor_bytes)) - 1;
  };
  const auto draw = [&](int most) {
    return 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(most)));
  };
  std::vector<int> outputs;
  for (int i = 0; i < length; ++i) {
    const int output = tensor(draw(9));
    model.operations.push_back({double(draw(9)),
                                0,
                                i == 0 ? std::vector<int>{} : std::vector{outputs.back()},
                                {output},
                                {},
                                {output},
                                false});
    outputs.push_back(output);
  }
  int gradient = tensor(1);  // the loss writes probabilities, which are the first gradient
  chain.gradient.assign(static_cast<std::size_t>(length), 0);
  chain.gradient.back() = gradient;
  model.operations.push_back({1, 0, {outputs.back()}, {gradient}, {}, {}, false});
  for (int i = length; i-- > 0;) {
    std::vector<int> inputs{gradient};
    if (i > 0) inputs.push_back(outputs[i - 1]);
    if (draw(2) == 1) inputs.push_back(outputs[i]);
    gradient = i > 0 ? tensor(model.tensor_bytes[outputs[i - 1]]) : tensor(0);
    if (i > 0) chain.gradient[i - 1] = gradient;
    model.operations.push_back({double(draw(9)), 0, inputs, {gradient}, {}, {}, true});
  }
  return chain;
}

// Returns the least time of recomputing within this memory limit, or -1 if nothing fits. Searches
// all orders of operations and all sets of tensors in memory.
double exhaustive(const Chain& chain, std::int64_t limit) {
  const StepModel& model = chain.model;
  // The state is the number of operations that have run, and the set of tensors in memory.
  using State = std::tuple<int, unsigned>;
  std::map<State, double> least;
  std::priority_queue<std::pair<double, State>, std::vector<std::pair<double, State>>, std::greater<>> open;
  const auto reach = [&](double ms, State state) {
    const auto [found, fresh] = least.try_emplace(state, ms);
    if (!fresh && found->second <= ms) return;
    found->second = ms;
    open.emplace(ms, state);
  };
  const auto bytes_of = [&](unsigned set) {
    std::int64_t bytes = 0;
    for (std::size_t tensor = 0; tensor < model.tensor_bytes.size(); ++tensor)
      if (set >> tensor & 1) bytes += model.tensor_bytes[tensor];
    return bytes;
  };
  reach(0, {0, 0});
  while (!open.empty()) {
    const auto [ms, state] = open.top();
    open.pop();
    if (least[state] < ms) continue;
    const auto [ran, memory] = state;
    if (ran == std::ssize(model.operations)) return ms;
    for (std::size_t tensor = 0; tensor < model.tensor_bytes.size(); ++tensor)
      if (memory >> tensor & 1) reach(ms, {ran, memory & ~(1u << tensor)});
    for (int i = 0; i <= ran; ++i) {
      const StepOperation& operation = model.operations[i];
      if (i < ran && operation.again.empty()) continue;
      unsigned inputs = 0, outputs = 0;
      for (const int tensor : operation.inputs) inputs |= 1u << tensor;
      for (const int tensor : operation.outputs) outputs |= 1u << tensor;
      if ((memory & inputs) != inputs || bytes_of(memory | outputs) > limit) continue;
      reach(ms + (i < ran ? operation.ms : 0), {std::max(ran, i + 1), memory | outputs});
    }
  }
  return -1;
}

// Compares the planner with exhaustive search, on several chains. Each chain is planned for every
// memory limit from its peak down to the smallest for which a schedule exists.
struct Compared {
  double planned = 0;  // ms of repeated operations, summed over all plans
  double best = 0;     // the least sum that is possible
  int plans = 0;       // limits for which the planner found a plan
  int optimal = 0;     // how many of these plans repeat no more than necessary
  int missed = 0;      // limits for which the planner found no plan, although a schedule exists

  void add(const Chain& chain, std::uint64_t seed) {
    const RecomputePlanner planner(chain.model);
    for (std::int64_t limit = live_peak(chain.model, single_runs(chain.model)); limit > 0; --limit) {
      const double least = exhaustive(chain, limit);
      const std::optional<RecomputePlan> plan = planner.plan(limit);
      if (least < 0) {
        EXPECT_FALSE(plan) << "seed " << seed << " limit " << limit;
        break;
      }
      ++(plan ? plans : missed);
      if (!plan) continue;
      EXPECT_LE(plan->live_bytes, limit);
      EXPECT_EQ(live_peak(chain.model, plan->schedule), plan->live_bytes);
      EXPECT_DOUBLE_EQ(repeated_ms(chain.model, plan->schedule), plan->repeated_ms);
      EXPECT_GE(plan->repeated_ms, least) << "seed " << seed << " limit " << limit;
      planned += plan->repeated_ms;
      best += least;
      if (plan->repeated_ms == least) ++optimal;
    }
  }
};

TEST(RecomputePlan, IsNearTheBestOfAllOnSmallChains) {
  Compared all;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    all.add(random_chain(3 + static_cast<int>(seed % 3), seed), seed);
  EXPECT_GT(all.plans, 300);
  EXPECT_GE(all.optimal, all.plans * 97 / 100);
  EXPECT_LE(all.planned, all.best * 1.03);
  EXPECT_LE(all.missed, all.plans / 25) << "limits just above the least possible";
}

// Returns a chain of operations over two slices of the batch. Forward and backward each run all
// operations on slice 0, then all on slice 1.
Chain sliced_chain(int length, std::uint64_t seed) {
  Random random(seed);
  const auto draw = [&](int most) {
    return 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(most)));
  };
  Chain chain;
  StepModel& model = chain.model;
  const auto tensor = [&](std::int64_t bytes, int family) {
    model.tensor_bytes.push_back(bytes);
    model.family.push_back(family);
    return static_cast<int>(std::ssize(model.tensor_bytes)) - 1;
  };
  std::vector<std::int64_t> bytes;
  std::vector<double> ms, backward_ms;
  for (int i = 0; i < length; ++i) {
    bytes.push_back(i + 1 < length ? draw(9) : 1);
    ms.push_back(draw(9));
    backward_ms.push_back(draw(9));
  }
  std::vector<int> made[2];
  for (int slice = 0; slice < 2; ++slice)
    for (int i = 0; i < length; ++i) {
      const std::vector<int> inputs = i == 0 ? std::vector<int>{} : std::vector{made[slice].back()};
      const int output = tensor(bytes[i], 100 + i);
      model.operations.push_back({ms[i], 0, inputs, {output}, {}, {output}, false, slice + i > 0});
      made[slice].push_back(output);
    }
  const int loss = tensor(1, 99);
  model.operations.push_back({1, 0, {made[0].back(), made[1].back()}, {loss}, {}, {}, false});
  for (int slice = 0; slice < 2; ++slice) {
    int gradient = loss;
    for (int i = length; i-- > 0;) {
      std::vector<int> inputs{gradient};
      if (i > 0) inputs.push_back(made[slice][i - 1]);
      gradient = tensor(i > 0 ? bytes[i - 1] : 0, 200 + i);
      model.operations.push_back(
          {backward_ms[i], 0, inputs, {gradient}, {}, {}, true, slice > 0 || i + 1 < length});
    }
  }
  return chain;
}

// The planner first keeps or drops a tensor for all slices. If memory is left, the plan may keep a
// dropped tensor for some slices.
TEST(RecomputePlan, IsNearTheBestOfAllOnSlicesOfABatch) {
  Compared all;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) all.add(sliced_chain(3, seed), seed);
  EXPECT_GT(all.plans, 100);
  EXPECT_GE(all.optimal, all.plans * 85 / 100);
  EXPECT_LE(all.planned, all.best * 1.08);
  EXPECT_LE(all.missed, all.plans / 10) << "limits just above the least possible";
}

// Returns a step whose first layers run over `slices` slices of the batch. They all write into one
// whole tensor, which the next layers and backward read.
StepModel step_with_whole_tensor(int slices) {
  StepModel model;
  const auto tensor = [&](std::int64_t bytes, int family = -1) {
    model.tensor_bytes.push_back(bytes);
    const int number = static_cast<int>(std::ssize(model.tensor_bytes)) - 1;
    model.family.push_back(family < 0 ? number : 1000 + family);
    return number;
  };
  const int whole = tensor(8 * slices);
  std::vector<int> first, second;
  for (int slice = 0; slice < slices; ++slice) {
    first.push_back(tensor(20, 0));
    second.push_back(tensor(10, 1));
    model.operations.push_back({5, 0, {}, {first.back()}, {}, {first.back()}, false, slice > 0});
    model.operations.push_back({4, 0, {first.back()}, {second.back()}, {}, {second.back()}, false, true});
    std::vector<int> inputs{second.back()};
    if (slice > 0) inputs.push_back(whole);
    model.operations.push_back({3, 0, inputs, {whole}, {}, {whole}, false, true});
  }
  // These tensors need memory between the first and the last operation that reads the whole tensor.
  const int a = tensor(20), b = tensor(30 * slices), c = tensor(20), loss = tensor(1);
  model.operations.push_back({9, 0, {whole}, {a}, {}, {a}, false});
  model.operations.push_back({9, 0, {a}, {b}, {}, {b}, false});
  model.operations.push_back({9, 0, {b}, {c}, {}, {c}, false});
  model.operations.push_back({1, 0, {c}, {loss}, {}, {}, false});
  const int of_b = tensor(30 * slices), of_a = tensor(20), of_whole = tensor(8 * slices);
  model.operations.push_back({9, 0, {loss, b}, {of_b}, {}, {}, true});
  model.operations.push_back({9, 0, {of_b, a}, {of_a}, {}, {}, true});
  model.operations.push_back({9, 0, {of_a, whole}, {of_whole}, {}, {}, true});
  for (int slice = 0; slice < slices; ++slice) {
    const int gradient = tensor(20);
    model.operations.push_back(
        {6, 0, {of_whole, first[slice], second[slice]}, {gradient}, {}, {}, true, slice > 0});
    model.operations.push_back({2, 0, {gradient}, {tensor(0)}, {}, {}, true, true});
  }
  return model;
}

// If one slice of the whole tensor runs again, all must. live_peak() throws if one is missing.
TEST(RecomputePlan, SlicesOfAWholeTensorRunAgainTogether) {
  for (const int slices : {2, 4, 8}) {
    const StepModel model = step_with_whole_tensor(slices);
    const RecomputePlanner planner(model);
    const std::int64_t least = planner.least().live_bytes, most = live_peak(model, single_runs(model));
    EXPECT_LT(least, most * 7 / 10);
    bool whole_again = false;
    for (std::int64_t limit = least; limit <= most; ++limit) {
      const std::optional<RecomputePlan> plan = planner.plan(limit);
      ASSERT_TRUE(plan) << limit;
      EXPECT_LE(plan->live_bytes, limit);
      std::vector<int> runs(model.operations.size(), 0);
      for (const StepRun& run : plan->schedule) ++runs[run.operation];
      for (int slice = 0; slice < slices; ++slice) {
        EXPECT_EQ(runs[3 * slice + 2], runs[2]) << "slice " << slice << " within " << limit;
        whole_again = whole_again || runs[3 * slice + 2] > 1;
      }
    }
    EXPECT_TRUE(whole_again);
  }
  StepModel model = step_with_whole_tensor(4);
  StepSchedule gap = single_runs(model);
  gap.erase(gap.begin() + 5);
  EXPECT_THROW(live_peak(model, gap), std::logic_error);
}

// The second operation may write its output into the buffer of its input, but not if the input is
// kept for backward. Then the planner must count both buffers.
TEST(RecomputePlan, KeptTensorsAreNotOverwritten) {
  StepModel model;
  model.tensor_bytes = {40, 40, 4, 1, 40, 40, 0};
  // Operation 1 may do that: y = f(x). Backward reads x and a small mask.
  model.operations = {
      {5, 0, {}, {0}, {}, {0}, false},      {5, 0, {0}, {1, 2}, {{0, 1}}, {1, 2}, false, true},
      {1, 0, {1}, {3}, {}, {}, false},      {5, 0, {3, 1}, {4}, {}, {}, true},
      {5, 0, {4, 0, 2}, {5}, {}, {}, true}, {5, 0, {5}, {6}, {}, {}, true}};
  const StepBlocks blocks(model);
  int keeping = 0;
  for (const StepBlock& block : blocks.blocks())
    for (const BlockOption& option : block.options) {
      if (std::ranges::find(option.kept, 0) == option.kept.end()) continue;
      ++keeping;
      EXPECT_GE(option.forward_peak, 80);
    }
  EXPECT_GT(keeping, 0);
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Expected {
  double share;    // memory limit, divided by the live bytes without recomputing
  double percent;  // most additional time that the plan may take, in per cent
};

void expect_curve(const StepModel& model, const std::vector<Expected>& curve) {
  const RecomputePlanner planner(model);
  const auto most = static_cast<double>(live_peak(model, single_runs(model)));
  double before = 0;
  for (const Expected& point : curve) {
    const auto limit = static_cast<std::int64_t>(point.share * most);
    const std::optional<RecomputePlan> plan = planner.plan(limit);
    ASSERT_TRUE(plan) << point.share;
    EXPECT_LE(plan->live_bytes, limit);
    EXPECT_EQ(live_peak(model, plan->schedule), plan->live_bytes);
    EXPECT_LE(plan->repeated_ms, point.percent / 100 * all_ms(model)) << point.share;
    EXPECT_GE(plan->repeated_ms, before) << "less memory for less time at " << point.share;
    before = plan->repeated_ms;
  }
}

TEST(RecomputePlan, ResidualBlocksTakeLittleTime) {
  expect_curve(residual_step(16), {{1, 0}, {0.9, 1.3}, {0.75, 3.9}, {0.5, 11.5}, {0.33, 19}, {0.25, 27}});
  expect_curve(residual_step(50), {{0.75, 3.5}, {0.5, 10.5}, {0.25, 22}, {0.15, 32}, {0.1, 46}});
}

// Dense blocks are hard for the planner, because they have no tensor on which all later operations
// depend.
TEST(RecomputePlan, DenseBlocksTakeLittleTime) {
  expect_curve(dense_step(4, 12), {{0.75, 2.8}, {0.5, 6.3}, {0.25, 13.5}, {0.15, 21}});
}

TEST(RecomputePlan, TwoThousandOperationsArePlannedInTwoSeconds) {
  const StepModel model = residual_step(134);
  ASSERT_GE(model.operations.size(), 2000u);
  const double start = processor_seconds();
  const RecomputePlanner planner(model);
  const auto most = static_cast<double>(live_peak(model, single_runs(model)));
  EXPECT_TRUE(planner.plan(static_cast<std::int64_t>(0.3 * most)));
  EXPECT_LT(processor_seconds() - start, 2);
}

TEST(RecomputePlan, OperationsThatRunOnceKeepTheirOutputs) {
  StepModel model = residual_step(8);
  for (StepOperation& operation : model.operations) operation.again.clear();
  const RecomputePlanner planner(model);
  const std::int64_t most = live_peak(model, single_runs(model));
  EXPECT_EQ(planner.least().live_bytes, most);
  EXPECT_FALSE(planner.plan(most - 1));
  EXPECT_EQ(planner.plan(most)->repeated_ms, 0);
}

// Blocks run backward in reverse order. If a tensor is read after its block's backward has ended,
// it cannot be recomputed with the block. So the plan must keep it.
TEST(RecomputePlan, AnOutputThatIsReadOutOfOrderIsKept) {
  StepModel model = residual_step(8);
  const int late = model.operations[40].outputs[0];
  model.operations.back().inputs.push_back(late);
  // The planner keeps this tensor and the 1 byte of the loss's output.
  EXPECT_EQ(StepBlocks(model).fixed_bytes(), 1 + model.tensor_bytes[late]);
  const RecomputePlanner planner(model);
  const RecomputePlan least = planner.least();
  EXPECT_LT(least.live_bytes, live_peak(model, single_runs(model)) / 2);
  for (const StepRun& run : least.schedule)
    EXPECT_TRUE(run.operation != 40 || run.outputs == model.operations[40].outputs);
}

// At the memory of a published schedule, a plan must not take more time than that schedule.
TEST(RecomputeBaselines, TakeLessMemoryAndMoreTimeThanAPlan) {
  const StepModel model = residual_step(16);
  const RecomputePlanner planner(model);
  const StepBlocks blocks(model);
  const std::int64_t most = live_peak(model, single_runs(model));
  std::vector<int> cheap;
  for (int i = 0; i < std::ssize(model.operations); ++i)
    if (!model.operations[i].backward && model.operations[i].ms == 1) cheap.push_back(i);
  for (const StepSchedule& schedule :
       {run_again(model, cheap), checkpoint_blocks(model, blocks, 1), checkpoint_blocks(model, blocks, 4)}) {
    const std::int64_t bytes = live_peak(model, schedule);
    EXPECT_LT(bytes, most * 9 / 10);
    EXPECT_GT(repeated_ms(model, schedule), 0);
    const std::optional<RecomputePlan> plan = planner.plan(bytes);
    ASSERT_TRUE(plan);
    EXPECT_LE(plan->repeated_ms, repeated_ms(model, schedule));
  }
}

TEST(LivePeak, SharesABufferIfNothingReadsTheInputLater) {
  StepModel model;
  model.tensor_bytes = {8, 8, 8, 0};
  model.operations = {{1, 0, {3}, {0}, {}, {0}, false},
                      {1, 0, {0}, {1}, {{0, 1}}, {1}, false},
                      {1, 4, {1}, {2}, {}, {}, true}};
  EXPECT_EQ(live_bytes(model, single_runs(model)), (std::vector<std::int64_t>{8, 8, 20}));
  model.operations[2].inputs.push_back(0);
  EXPECT_EQ(live_bytes(model, single_runs(model)), (std::vector<std::int64_t>{8, 16, 28}));
  EXPECT_THROW(live_peak(model, {{1, {1}}}), std::logic_error);
}

TEST(RemoveUnread, LeavesOutWhatNothingReads) {
  const StepModel model = residual_step(2);
  StepSchedule schedule = single_runs(model);
  const StepSchedule once = schedule;
  schedule.push_back({3, model.operations[3].outputs});
  remove_unread(model, schedule);
  EXPECT_EQ(schedule.size(), once.size());
}

}  // namespace
}  // namespace convoy::partition
