// Checks that every network of the zoo compiles for the CPU backend and needs hardly more memory
// than the lifetimes of its buffers require.
#include "app/compile/compiled_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "app/graph/graph_builder.h"
#include "app/model/zoo/zoo.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

CompiledGraph compile_on_cpu(const Network& network, const GraphOptions& options = {}) {
  return compile_graph(build_step_graph(network, options), kernels::Backend::cpu);
}

// Returns the largest number of bytes that are live at one node. No arena can be smaller. Tensors
// that share a buffer count once.
std::int64_t most_live_bytes(const CompiledGraph& compiled) {
  const auto& nodes = compiled.graph.nodes;
  std::vector<int> first(compiled.descs.size(), -1), last(compiled.descs.size(), -1);
  for (int time = 0; time < std::ssize(nodes); ++time)
    for (const auto* operands :
         {&nodes[static_cast<std::size_t>(time)].inputs, &nodes[static_cast<std::size_t>(time)].outputs})
      for (const TensorId id : *operands) {
        const auto at = static_cast<std::size_t>(id);
        if (first[at] < 0) first[at] = time;
        last[at] = time;
      }
  std::int64_t most = 0;
  for (int time = 0; time < std::ssize(nodes); ++time) {
    std::map<std::int64_t, std::int64_t> bytes_at;
    for (std::size_t id = 0; id < first.size(); ++id)
      if (compiled.tensor_offset[id] >= 0 && first[id] >= 0 && first[id] <= time && time <= last[id])
        bytes_at[compiled.tensor_offset[id]] = static_cast<std::int64_t>(compiled.descs[id].bytes());
    auto live = static_cast<std::int64_t>(compiled.kernels[static_cast<std::size_t>(time)].workspace_bytes);
    for (const auto& [offset, bytes] : bytes_at) live += bytes;
    most = std::max(most, live);
  }
  return most;
}

TEST(CompiledGraph, EveryNetworkIsReadyForTheCpu) {
  for (std::string name : network_names()) {
    if (name == "wrnDEPTH_WIDTH") name = "wrn16_4";
    for (const int channels : {1, 3}) {
      SCOPED_TRACE(name + ", " + std::to_string(channels) + " channels");
      const std::int64_t side = name == "alexnet" || name.starts_with("vgg") ? 224
                                : name == "inception_v3"                     ? 75
                                                                             : 32;
      const CompiledGraph compiled = compile_on_cpu(fuse(make_network(name, {2, channels, side, side}, 10)));
      EXPECT_EQ(compiled.kernels.size(), compiled.graph.nodes.size());
      const std::int64_t bound = most_live_bytes(compiled);
      EXPECT_GE(compiled.activation_bytes, bound);
      EXPECT_LE(static_cast<double>(compiled.activation_bytes), static_cast<double>(bound) * 1.03 + 65536);
    }
  }
}

// A buffer's memory must not be reused before `kReuseDelay` nodes have passed, so that readers in
// other lanes (which run at the same time, lane_plan.h) can finish.
TEST(CompiledGraph, NothingReusesABufferBeforeItsDelay) {
  constexpr int kReuseDelay = 4;
  const Network network = fuse(make_network("googlenet", {2, 3, 64, 64}, 10));
  const CompiledGraph tight = compile_on_cpu(network);
  const CompiledGraph compiled =
      compile_graph(build_step_graph(network, {}), kernels::Backend::cpu, {}, kReuseDelay);
  struct Span {
    std::int64_t begin, end;
    int first, last;
  };
  const auto spans_of = [](const CompiledGraph& graph) {
    std::vector<Span> spans;
    std::map<TensorId, std::size_t> span_of;
    for (int time = 0; time < std::ssize(graph.graph.nodes); ++time) {
      const Node& node = graph.graph.nodes[static_cast<std::size_t>(time)];
      for (const auto* operands : {&node.inputs, &node.outputs})
        for (const TensorId id : *operands) {
          const std::int64_t begin = graph.tensor_offset[static_cast<std::size_t>(id)];
          if (begin < 0) continue;
          const auto bytes = static_cast<std::int64_t>(graph.descs[static_cast<std::size_t>(id)].bytes());
          // If the node works in place, finds the span of the input whose buffer becomes the
          // output.
          const auto input = std::ranges::find_if(spans, [&](const Span& span) {
            return span.begin == begin && span.end == begin + bytes && span.last == time;
          });
          const auto [at, is_new] = span_of.try_emplace(id, input - spans.begin());
          if (is_new && input == spans.end()) spans.push_back({begin, begin + bytes, time, time});
          spans[at->second].last = time;
        }
      const auto workspace =
          static_cast<std::int64_t>(graph.kernels[static_cast<std::size_t>(time)].workspace_bytes);
      const std::int64_t begin = graph.workspace_offset[static_cast<std::size_t>(time)];
      if (workspace > 0) spans.push_back({begin, begin + workspace, time, time});
    }
    return spans;
  };
  const auto too_early = [&](const CompiledGraph& graph) {
    int found = 0;
    const std::vector<Span> spans = spans_of(graph);
    for (const Span& before : spans)
      for (const Span& after : spans)
        found += before.begin < after.end && after.begin < before.end && after.first > before.last &&
                 after.first <= before.last + kReuseDelay;
    return found;
  };
  EXPECT_GT(too_early(tight), 0);
  EXPECT_EQ(too_early(compiled), 0);
  EXPECT_LT(static_cast<double>(compiled.activation_bytes),
            1.2 * static_cast<double>(tight.activation_bytes));
}

TEST(CompiledGraph, AReuseDelayTakesLittleMemory) {
  const StepGraph graph = build_step_graph(fuse(make_network("vgg16", {128, 3, 224, 224}, 10)), {});
  const CompiledGraph tight = compile_graph(graph, kernels::Backend::cpu);
  const CompiledGraph compiled = compile_graph(graph, kernels::Backend::cpu, {}, 4);
  EXPECT_LE(static_cast<double>(compiled.activation_bytes),
            1.04 * static_cast<double>(tight.activation_bytes));
  EXPECT_NE(compiled.tensor_offset, tight.tensor_offset) << "the reuse delay has no effect";
}

// Every tensor must have a definite layout, because it has no size without one. Every input must be
// written by an earlier node; a node that reorders a tensor, for example, must come before its
// reader.
TEST(CompiledGraph, LayoutsAreSettledAndOperandsDefined) {
  for (const Network& network : {every_op(), residual(), grouped(), fuse(every_op()), fuse(rectifying())}) {
    const CompiledGraph compiled = compile_on_cpu(network);
    ASSERT_EQ(compiled.descs.size(), compiled.graph.tensors.size());
    std::vector<bool> written(compiled.descs.size(), false);
    for (const Node& node : compiled.graph.nodes) {
      for (const TensorId input : node.inputs) {
        const auto at = static_cast<std::size_t>(input);
        const bool in_step = compiled.graph.tensors[at].role == TensorRole::activation;
        EXPECT_TRUE(written[at] || !in_step) << node.name() << " of " << node.layer;
        EXPECT_NE(compiled.descs[at].layout, kernels::Layout::any) << compiled.graph.tensors[at].name;
        EXPECT_EQ(compiled.tensor_offset[at] >= 0, in_step) << compiled.graph.tensors[at].name;
      }
      for (const TensorId output : node.outputs) {
        const auto at = static_cast<std::size_t>(output);
        written[at] = true;
        // Only the backend's library can read an opaque layout. It is allowed for weights only.
        const bool in_step = compiled.graph.tensors[at].role == TensorRole::activation;
        const bool opaque = compiled.descs[at].layout == kernels::Layout::opaque;
        EXPECT_FALSE(in_step && opaque) << compiled.graph.tensors[at].name;
      }
    }
  }
}

// A kernel may overwrite one operand, but not if the same tensor is also another operand.
TEST(CompiledGraph, AnInputThatIsReadTwiceIsNotOverwritten) {
  const CompiledGraph compiled = compile_on_cpu(residual(), {.training = false});
  const auto add = std::ranges::find_if(compiled.graph.nodes, [](const Node& node) {
    return node.layer == "c.add";  // both of its inputs are read here for the last time
  });
  ASSERT_NE(add, compiled.graph.nodes.end());
  const auto at = static_cast<std::size_t>(add - compiled.graph.nodes.begin());
  for (const bool twice : {false, true}) {
    StepGraph graph = compiled.graph;
    std::vector<kernels::Kernel> kernels = compiled.kernels;
    kernels[at].in_place = {{0, 0}};
    if (twice) graph.nodes[at].inputs[1] = graph.nodes[at].inputs[0];
    const TensorId input = graph.nodes[at].inputs[0], output = graph.nodes[at].outputs[0];
    const CompiledGraph result = assign_buffers(std::move(graph), compiled.descs, std::move(kernels));
    const auto offset = [&](TensorId id) { return result.tensor_offset[static_cast<std::size_t>(id)]; };
    EXPECT_EQ(offset(input) == offset(output), !twice);
  }
}

TEST(CompiledGraph, GradientsHaveTheLayoutOfTheirParameters) {
  const CompiledGraph compiled = compile_on_cpu(every_op());
  for (const GraphParameter& parameter : compiled.graph.parameters) {
    const auto& weights = compiled.descs[static_cast<std::size_t>(parameter.tensor)];
    const auto& gradient = compiled.descs[static_cast<std::size_t>(parameter.gradient)];
    EXPECT_EQ(weights.layout, gradient.layout) << parameter.spec.name;
    EXPECT_EQ(weights.bytes(), gradient.bytes()) << parameter.spec.name;
  }
}

TEST(CompiledGraph, AKernelThatCannotBeMadeNamesLayerAndBackend) {
  try {
    compile_graph(build_step_graph(residual(), {}), kernels::Backend::cuda);
    GTEST_SKIP() << "this machine has a GPU";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("layer stem.conv, conv2d_forward on cuda: "))
        << error.what();
  }
}

}  // namespace
}  // namespace convoy::app
