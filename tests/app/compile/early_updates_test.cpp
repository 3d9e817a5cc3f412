// Tests that backward may update parameters: at the right place, within less memory, and with the
// bits of an update at the end of the step.
#include "app/compile/early_updates.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "app/compile/fit_memory.h"
#include "app/compile/memory_plan.h"
#include "tests/app/compile/limited_training.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::size_t at(TensorId id) { return static_cast<std::size_t>(id); }

int updates_in(const CompiledGraph& step) {
  return static_cast<int>(std::ranges::count_if(step.graph.nodes, &Node::is<OptimizerUpdate>));
}

// Returns the position of the last node that uses the tensor and is no update; -1 if there is none.
int last_use(const StepGraph& graph, TensorId tensor) {
  int last = -1;
  for (int i = 0; i < std::ssize(graph.nodes); ++i) {
    const Node& node = graph.nodes[static_cast<std::size_t>(i)];
    for (const auto* operands : {&node.inputs, &node.outputs})
      if (tensor >= 0 && !node.is<OptimizerUpdate>() &&
          std::ranges::find(*operands, tensor) != operands->end())
        last = i;
  }
  return last;
}

class EarlyUpdates : public LimitedTraining {
 protected:
  EarlyUpdates() : LimitedTraining(every_op()) { options_.synchronised_batch_norm = false; }

  CompiledSteps steps(std::int64_t least_bytes) {
    options_.early_update_bytes = least_bytes;
    return compile_steps(network_, options_, {&ranks_, &ranks_, nullptr});
  }

  // Trains with early and with late updates, and compares losses, parameters and statistics.
  void expect_same_bits(const std::string& what, std::int64_t limit = 0) {
    options_.early_update_bytes = kNever;
    const auto late = run(0);
    options_.early_update_bytes = 0;
    EXPECT_EQ(run(limit), late) << what;
  }
};

TEST_F(EarlyUpdates, ComeAfterEveryOtherUseOfTheParameterAndItsGradient) {
  for (const std::int64_t least : {std::int64_t{0}, std::int64_t{1000}}) {
    const CompiledSteps compiled = steps(least);
    const StepGraph& graph = compiled.train->graph;
    for (const GraphParameter& parameter : graph.parameters) {
      const auto bytes = static_cast<std::int64_t>(compiled.train->descs[at(parameter.tensor)].bytes());
      const auto is_its_update = [&](const Node& node) {
        return node.is<OptimizerUpdate>() && node.inputs[0] == parameter.tensor;
      };
      const auto update = std::ranges::find_if(graph.nodes, is_its_update);
      if (bytes < least) {
        EXPECT_EQ(update, graph.nodes.end()) << parameter.spec.name;
        EXPECT_EQ(graph.tensors[at(parameter.gradient)].role, TensorRole::gradient);
        continue;
      }
      ASSERT_NE(update, graph.nodes.end()) << parameter.spec.name;
      EXPECT_EQ(std::ranges::count_if(graph.nodes, is_its_update), 1) << parameter.spec.name;
      EXPECT_EQ(update->inputs[1], parameter.gradient);
      EXPECT_EQ(graph.tensors[at(parameter.gradient)].role, TensorRole::activation);
      for (const TensorId tensor : {parameter.tensor, parameter.copy, parameter.gradient})
        EXPECT_LT(last_use(graph, tensor), update - graph.nodes.begin()) << parameter.spec.name;
    }
  }
}

TEST_F(EarlyUpdates, LeaveOnlyTheOtherGradientsInTheFlatBuffer) {
  const CompiledSteps late = steps(kNever), some = steps(1000), all = steps(0);
  const auto gradients = [&](const CompiledSteps& of) {
    return MemoryPlan(of, options_, {}).bytes(Region::gradients);
  };
  EXPECT_EQ(updates_in(*late.train), 0);
  EXPECT_GT(updates_in(*some.train), 2);
  EXPECT_GT(updates_in(*all.train), updates_in(*some.train));
  EXPECT_EQ(late.flat.gradient_elements, late.flat.trained_elements);
  EXPECT_EQ(all.flat.gradient_elements, 0);
  EXPECT_EQ(all.flat.trained_elements, late.flat.trained_elements);
  EXPECT_LT(gradients(some), gradients(late));
  EXPECT_EQ(gradients(all), 0);
  // Segments do not overlap, and those that are updated together come first.
  for (std::size_t i = 1; i < some.flat.segments.size(); ++i)
    EXPECT_GE(some.flat.segments[i].offset,
              some.flat.segments[i - 1].offset + some.flat.segments[i - 1].count);
  for (std::size_t i = 0; i < some.flat.segments.size(); ++i)
    EXPECT_EQ(some.flat.segments[i].count * std::int64_t{sizeof(float)} < 1000, i < some.flat.gradients);
}

TEST_F(EarlyUpdates, ChangeNoBitWithAnyOptimizerThatMayUseThem) {
  kernels::Hyperparameters& numbers = options_.members[0].hyperparameters;
  numbers.weight_decay = 1e-3f;
  expect_same_bits("sgd");
  numbers.nesterov = 1;
  options_.optimizer.averages = true;
  numbers.average_decay = 0.9;
  expect_same_bits("nesterov with averages");
  options_.optimizer.kind = kernels::OptimizerKind::adamw;
  learning_rate_ = 0.001f;
  expect_same_bits("adamw");
  options_.optimizer = {.velocity = false};
  expect_same_bits("sgd without a velocity");
}

TEST_F(EarlyUpdates, ChangeNoBitWithinLessMemory) {
  const CompiledSteps compiled = steps(0);
  const std::vector<double> node_ms = estimated_node_ms(*compiled.train, options_);
  const MemoryFitter fitter(compiled, options_, {}, node_ms, estimated_link(options_));
  const std::int64_t least = fitter.least().bytes, all = fitter.unlimited_bytes();
  ASSERT_LT(least, all);
  for (const std::int64_t limit : {least, (least + all) / 2}) {
    expect_same_bits("a limit", limit);
    EXPECT_LE(bytes_, limit);
    EXPECT_TRUE(fit_.fitted);
  }
}

// A checkpoint lists these tensors, and a run on another number of ranks, which has no early
// updates, must be able to resume from it.
TEST_F(EarlyUpdates, LeaveTheOrderOfTheTensorsInACheckpoint) {
  options_.optimizer.averages = true;
  const auto names = [&](std::int64_t least_bytes) {
    const ModelMemory memory(steps(least_bytes), options_);
    std::vector<std::string> all;
    for (const auto* list : {&memory.parameters(), &memory.optimizer_states(), &memory.averages()})
      for (const PersistentTensor& tensor : *list) all.push_back(tensor.name);
    return all;
  };
  EXPECT_EQ(names(1000), names(kNever));
  EXPECT_EQ(names(0), names(kNever));
}

TEST_F(EarlyUpdates, AreNotUsedWhereTheyWouldBeWrong) {
  EXPECT_TRUE(updates_early(options_, 1));
  EXPECT_FALSE(updates_early(options_, 2)) << "the gradients of the ranks are not summed yet";
  StepOptions other = options_;
  other.clip = true;
  EXPECT_FALSE(updates_early(other, 1)) << "the norm of all gradients is not known yet";
  other = options_;
  other.accumulate = true;
  EXPECT_FALSE(updates_early(other, 1)) << "the gradients of later parts are missing";
  other = options_;
  other.optimizer.kind = kernels::OptimizerKind::lars;
  EXPECT_FALSE(updates_early(other, 1));
}

// A step in which a node reads a parameter after its update must not run.
TEST_F(EarlyUpdates, AStepThatReadsAParameterTooLateIsRefused) {
  CompiledSteps wrong = steps(0);
  auto& nodes = wrong.train->graph.nodes;
  auto& kernels = wrong.train->kernels;
  const auto update = std::ranges::find_if(nodes, [&](const Node& node) {
    return node.is<OptimizerUpdate>() && last_use(wrong.train->graph, node.inputs[0]) >= 0;
  });
  ASSERT_NE(update, nodes.end());
  const auto from = update - nodes.begin(), to = last_use(wrong.train->graph, update->inputs[0]) + 0L;
  std::rotate(nodes.begin() + to, nodes.begin() + from, nodes.begin() + from + 1);
  std::rotate(kernels.begin() + to, kernels.begin() + from, kernels.begin() + from + 1);
  EXPECT_THROW(Session(std::move(wrong), options_, {&ranks_, &ranks_, nullptr}), std::logic_error);
}

}  // namespace
}  // namespace convoy::app
