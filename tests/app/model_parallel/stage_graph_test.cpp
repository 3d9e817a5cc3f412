// Divides steps into tasks for the partitioner, and into stages (one per rank). The steps have bf16
// copies of parameters and stored images, as on a GPU, but run on the host.
// - A parameter must be counted even if nodes read only its copy, and must be on exactly one stage.
// - The transforms of the images must be on the stage of the images.
// - A stage must reserve memory for copies of parameters only if it has some.
#include "app/model_parallel/stage_graph.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "app/execute/model_memory.h"
#include "app/graph/graph_builder.h"
#include "app/graph/passes/device_input.h"
#include "app/graph/passes/precision.h"
#include "app/model_parallel/step_tasks.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

// Compiles a graph with row-major tensors and without kernels, since no test here runs it.
CompiledGraph compiled(StepGraph graph) {
  std::vector<kernels::TensorDesc> descs;
  for (const Tensor& tensor : graph.tensors)
    descs.push_back({tensor.dtype, tensor.shape, kernels::Layout::row_major, nullptr});
  std::vector<kernels::Kernel> kernels(graph.nodes.size());
  return assign_buffers(std::move(graph), std::move(descs), std::move(kernels));
}

CompiledGraph step_of(const Network& network, Precision precision) {
  StepGraph graph = build_step_graph(fuse(network), {});
  if (precision == Precision::bf16) store_in_bf16(graph);
  StoredInput stored;
  const kernels::Shape images = network.shape(0);
  stored.bytes = 3 * images.elements();
  stored.channels = images[1];
  stored.scale.assign(static_cast<std::size_t>(images[1]), 1.0f);
  stored.shift.assign(static_cast<std::size_t>(images[1]), 0.0f);
  stored.fill.assign(static_cast<std::size_t>(images[1]), 0);
  read_stored_images(graph, stored);
  return compiled(std::move(graph));
}

struct Totals {
  std::int64_t resident = 0, update_ns = 0;
};
Totals totals_of(const CompiledGraph& step) {
  TaskCosts costs;
  costs.times.node_ms.assign(step.graph.nodes.size(), 0);
  costs.times.update_ms_per_element = 1;
  costs.optimizer_states = 1;
  const partition::TaskGraph tasks = make_step_tasks(step, find_dependences(step.graph), costs);
  Totals totals;
  for (partition::NodeIndex task = 0; task < tasks.node_count(); ++task)
    totals.resident += tasks.resident_bytes(task), totals.update_ns += tasks.time(task);
  return totals;
}

TEST(PartitionedGraph, TasksHoldWholeParametersAndTheirCopies) {
  for (const Network& network : {every_op(), residual()}) {
    const CompiledGraph step = step_of(network, Precision::bf16);
    const Totals plain = totals_of(step_of(network, Precision::fp32)), copied = totals_of(step);
    std::int64_t elements = 0, of_copies = 0;
    for (const GraphParameter& parameter : step.graph.parameters) {
      elements += parameter.spec.shape.elements();
      if (parameter.copy >= 0) of_copies += parameter.spec.shape.elements();
    }
    ASSERT_GT(of_copies, 0);
    EXPECT_EQ(copied.resident, plain.resident + 2 * of_copies) << network.name();
    EXPECT_EQ(copied.update_ns, plain.update_ns) << network.name();
    EXPECT_EQ(copied.update_ns, elements * 1'000'000) << network.name();
  }
}

TEST(PartitionedGraph, EachParameterAndTheBatchHaveExactlyOneStage) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const CompiledGraph step = step_of(residual(), Precision::bf16);
    const StepDependences dependences = find_dependences(step.graph);
    const int stages = 2 + round % 4;
    std::vector<int> stage(static_cast<std::size_t>(dependences.groups)), stage_of;
    for (int& of_group : stage) of_group = static_cast<int>(random() % static_cast<unsigned>(stages));
    for (const int group : dependences.group) stage_of.push_back(stage[static_cast<std::size_t>(group)]);
    const StagePrograms programs =
        make_stage_programs(dependences, stage_of, stages, sequential_times(step.graph));
    std::multiset<std::string> held;
    int images = 0, labels = 0, metrics = 0;
    for (int index = 0; index < stages; ++index) {
      const CompiledGraph own = stage_of_step(step, programs, index);
      bool copied = false;
      for (const GraphParameter& parameter : own.graph.parameters) {
        held.insert(parameter.spec.name);
        copied = copied || parameter.copy >= 0;
      }
      EXPECT_EQ(FlatLayout(own).copied, copied);
      EXPECT_EQ(own.graph.transforms >= 0, own.graph.images >= 0)
          << "a stage has images without their transforms";
      images += own.graph.images >= 0, labels += own.graph.labels >= 0, metrics += own.graph.metrics >= 0;
    }
    std::multiset<std::string> all;
    for (const GraphParameter& parameter : step.graph.parameters) all.insert(parameter.spec.name);
    EXPECT_EQ(held, all);
    EXPECT_EQ(images, 1);
    EXPECT_EQ(labels, 1);
    EXPECT_EQ(metrics, 1);
  }
}

}  // namespace
}  // namespace convoy::app
