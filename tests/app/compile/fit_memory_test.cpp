// Tests steps that keep to a memory limit. They must give the bits of a step without a limit, and
// take as many bytes as planned.
#include "app/compile/fit_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/compile/memory_plan.h"
#include "app/compile/repeated_runs.h"
#include "app/execute/session.h"
#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"
#include "app/model/zoo/zoo.h"
#include "comm/single_rank.h"
#include "tests/app/compile/limited_training.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

CompiledGraph compiled(const Network& network, bool fused) {
  GraphOptions options{.synchronised_batch_norm = false};
  options.loss_weights.assign(network.outputs().size(), 0.5f);
  StepGraph graph = build_step_graph(fuse(network), options);
  if (fused) fuse_for_gpu(graph, true, NormInputRule{.least_elements = 1});
  return compile_graph(std::move(graph), kernels::Backend::reference);
}

partition::StepModel model_of(const CompiledGraph& step) {
  return step_model(step, estimated_node_ms(step, {}));
}

// Returns a schedule that recomputes as much as possible: before every operation of backward, all
// operations of forward that can be repeated run again.
partition::StepSchedule everything_again(const partition::StepModel& model) {
  partition::StepSchedule schedule, forward;
  for (const partition::StepRun& run : single_runs(model)) {
    const partition::StepOperation& operation = model.operations[static_cast<std::size_t>(run.operation)];
    if (operation.backward) schedule.insert(schedule.end(), forward.begin(), forward.end());
    if (!operation.again.empty()) forward.push_back({run.operation, operation.again});
    schedule.push_back(run);
  }
  return schedule;
}

void expect_same_bits(const CompiledGraph& step, const partition::StepSchedule& schedule,
                      const std::string& network) {
  // Memory that was not written holds NaN, so a read that comes too early changes the loss. If a
  // first step updated running statistics twice, the results after the second step would differ.
  GraphRunner expected(step), actual(with_schedule(step, schedule, kernels::Backend::reference, 0));
  for (int run = 0; run < 2; ++run) EXPECT_EQ(actual.run(), expected.run()) << network;
  EXPECT_EQ(actual.gradients(), expected.gradients()) << network;
  EXPECT_EQ(actual.states(), expected.states()) << network;
  EXPECT_TRUE(actual.kept_to_arena()) << network;
}

std::vector<int> copyable_tensors(const partition::StepModel& model) {
  std::vector<int> tensors;
  for (int tensor = 0; tensor < std::ssize(model.copyable); ++tensor)
    if (model.copyable[static_cast<std::size_t>(tensor)] &&
        model.tensor_bytes[static_cast<std::size_t>(tensor)] > 0)
      tensors.push_back(tensor);
  return tensors;
}

TEST(WithSchedule, EveryOperationOfForwardRunsAgainWithTheSameBits) {
  for (const Network& network : {every_op(), residual(), rectifying(), grouped(), modern(), auxiliary()})
    for (const bool fused : {false, true}) {
      const CompiledGraph step = compiled(network, fused);
      const partition::StepModel model = model_of(step);
      partition::StepSchedule schedule = everything_again(model);
      EXPECT_GT(std::ssize(schedule), 3 * std::ssize(model.operations));
      expect_same_bits(step, schedule, network.name());
      remove_unread(model, schedule);
      EXPECT_GT(std::ssize(schedule), std::ssize(model.operations) * 5 / 4);
      expect_same_bits(step, schedule, network.name());
    }
}

TEST(WithSchedule, PlansChangeNoBit) {
  EXPECT_EQ(std::ranges::count_if(compiled(deep(1), true).graph.nodes, &Node::is<BatchNormAffine>), 5);
  for (const Network& network :
       {every_op(), residual(), rectifying(), grouped(), modern(), auxiliary(), deep(), deep(1)})
    for (const bool fused : {false, true}) {
      const CompiledGraph step = compiled(network, fused);
      const partition::RecomputePlanner planner(model_of(step));
      const std::int64_t least = planner.least().live_bytes;
      EXPECT_LT(least, step.activation_bytes) << network.name();
      for (int part = 0; part < 3; ++part) {
        const std::int64_t limit = least + (step.activation_bytes - least) * part / 3;
        const auto plan = planner.plan(limit);
        ASSERT_TRUE(plan) << network.name() << " within " << limit;
        expect_same_bits(step, plan->schedule, network.name());
      }
    }
}

// Copies every copyable tensor to host memory and back. Does so in a step that runs every operation
// once, and in a step that runs some operations a second time.
TEST(WithSchedule, CopiesToHostMemoryChangeNoBit) {
  const partition::HostLink link{1e3, 1e3, std::int64_t{1} << 30};
  for (const Network& network :
       {every_op(), residual(), rectifying(), grouped(), modern(), auxiliary(), deep(), deep(1)})
    for (const bool fused : {false, true}) {
      const CompiledGraph step = compiled(network, fused);
      const partition::StepModel model = model_of(step);
      const std::vector<int> tensors = copyable_tensors(model);
      EXPECT_GT(tensors.size(), 5u) << network.name();
      const partition::RecomputePlanner again(model, tensors, link);
      for (const partition::StepSchedule& schedule : {single_runs(model), again.least().schedule}) {
        const partition::HostCopies copies(model, schedule, tensors, link);
        for (const partition::StepSchedule& copied :
             {copies.on_demand(), copies.hidden(std::int64_t{1} << 40),
              copies.ahead_of(std::vector<char>(model.operations.size(), 1), 3)}) {
          EXPECT_GT(partition::host_bytes(model, copied), 0);
          EXPECT_EQ(with_schedule(step, copied, kernels::Backend::reference, 0).host_bytes,
                    partition::host_bytes(model, copied));
          expect_same_bits(step, copied, network.name());
        }
      }
    }
}

TEST(WithSchedule, PlansWithCopiesChangeNoBitAndTakeTheBytesThatTheySay) {
  for (const Network& network : {every_op(), residual(), modern(), deep(), deep(1)}) {
    const CompiledGraph step = compiled(network, true);
    // This link is so fast that copies take less time than operations, so that plans use copies.
    const partition::StepModel model = step_model(step, std::vector<double>(step.graph.nodes.size(), 1.0));
    const partition::StepPlanner planner(model, {1e6, 1e6, std::int64_t{1} << 30});
    const partition::StepPlan least = planner.least();
    EXPECT_LE(least.live_bytes, partition::RecomputePlanner(model).least().live_bytes);
    for (int part = 0; part < 3; ++part) {
      const std::int64_t limit = least.live_bytes + (step.activation_bytes - least.live_bytes) * part / 3;
      const auto plan = planner.plan(limit);
      ASSERT_TRUE(plan) << network.name() << " within " << limit;
      EXPECT_FALSE(plan->away.empty());
      const CompiledGraph limited = with_schedule(step, plan->schedule, kernels::Backend::reference, 0);
      EXPECT_GE(limited.activation_bytes, plan->live_bytes);
      EXPECT_EQ(limited.host_bytes, plan->host_bytes);
      expect_same_bits(step, plan->schedule, network.name());
    }
  }
}

// The planner must count exactly those bytes as live that the buffers of the compiled step take.
TEST(WithSchedule, TakesTheBytesThatThePlanSays) {
  for (const char* name : {"resnet50", "googlenet", "wrn28_10"}) {
    const Network network = make_network(name, {4, 3, 64, 64}, 10);
    const CompiledGraph step = compile_graph(
        build_step_graph(fuse(network), {.synchronised_batch_norm = false}), kernels::Backend::cpu);
    const partition::RecomputePlanner planner(model_of(step));
    const std::int64_t most = partition::live_peak(planner.model(), single_runs(planner.model()));
    EXPECT_NEAR(static_cast<double>(step.activation_bytes) / static_cast<double>(most), 1, 0.02) << name;
    for (const double share : {0.9, 0.7, 0.5}) {
      const auto plan = planner.plan(static_cast<std::int64_t>(share * static_cast<double>(most)));
      if (!plan) continue;
      const CompiledGraph limited = with_schedule(step, plan->schedule, kernels::Backend::cpu, 0);
      EXPECT_EQ(partition::live_peak(planner.model(), plan->schedule), plan->live_bytes);
      EXPECT_GE(limited.activation_bytes, plan->live_bytes) << name << " at " << share;
      EXPECT_LE(limited.activation_bytes, plan->live_bytes * 103 / 100) << name << " at " << share;
    }
  }
}

class FitMemory : public LimitedTraining {
 protected:
  FitMemory() : LimitedTraining(deep()) {
    options_.backend = kernels::Backend::reference;
    options_.synchronised_batch_norm = false;
  }
  std::int64_t least() {
    const CompiledSteps steps = compile_steps(network_, options_, {&ranks_, &ranks_, nullptr});
    const std::vector<double> node_ms = estimated_node_ms(*steps.train, options_);
    return MemoryFitter(steps, options_, {}, node_ms, estimated_link(options_)).least().bytes;
  }
};

TEST_F(FitMemory, AnyLimitDownToTheLeastIsMetAndChangesNoBit) {
  const auto expected = run(0);
  EXPECT_LT(expected.first[2], expected.first[0]) << "nothing was learned";
  EXPECT_FALSE(fit_.fitted);
  const std::int64_t most = bytes_, fewest = least();
  EXPECT_LT(fewest, most / 2);
  double before = -1;
  for (int part = 3; part >= 0; --part) {
    const std::int64_t limit = fewest + (most - 1 - fewest) * part / 3;
    EXPECT_EQ(run(limit), expected) << limit;
    EXPECT_LE(bytes_, limit);
    EXPECT_TRUE(fit_.fitted);
    EXPECT_LT(fit_.kept_bytes, fit_.all_kept_bytes);
    EXPECT_FALSE(fit_.repeated.empty());
    EXPECT_GE(fit_.repeated_ms, before) << "less memory for less time";
    before = fit_.repeated_ms;
  }
}

TEST_F(FitMemory, ActivationsInHostMemoryChangeNoBitAndReachLess) {
  const auto expected = run(0);
  const std::int64_t most = bytes_, without = least(), limit = (most + without) / 2;
  EXPECT_EQ(run(limit), expected);
  EXPECT_EQ(fit_.copied, 0);
  const double repeated = fit_.more_ms;
  options_.host_memory = 1 << 20;
  EXPECT_LT(least(), without);
  for (const std::int64_t within : {limit, least()}) {
    EXPECT_EQ(run(within), expected) << within;
    EXPECT_LE(bytes_, within);
    EXPECT_LE(fit_.host_bytes, options_.host_memory);
    EXPECT_EQ(fit_.host_limit, options_.host_memory);
    if (within == limit) {
      EXPECT_LE(fit_.more_ms, repeated);
    }
  }
  EXPECT_GT(fit_.copied, 0) << "the least limit is that of recomputation";
  EXPECT_GT(fit_.host_bytes, 0);
}

TEST_F(FitMemory, HostMemoryThatCannotBeReservedIsOneClearLine) {
  CompiledSteps steps = compile_steps(network_, options_, {&ranks_, &ranks_, nullptr});
  steps.train->host_bytes = std::int64_t{1} << 60;
  try {
    Session(std::move(steps), options_, {&ranks_, &ranks_, nullptr});
    FAIL() << "reserved 2^60 bytes";
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("--host-memory: cannot reserve the 1152921504606846976 bytes")) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST_F(FitMemory, ALimitBelowTheLeastSaysTheLeastAndWhatNeedsIt) {
  const std::int64_t fewest = least();
  try {
    run(fewest - 4096);
    FAIL() << "ran in less than the least";
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(std::to_string(fewest)), std::string::npos) << text;
    EXPECT_NE(text.find("while it runs"), std::string::npos) << text;
    EXPECT_NE(text.find(" of "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace convoy::app
