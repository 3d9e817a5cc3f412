// Tests steps that compute some layers over slices of the batch. They must give the bits of a step
// over the whole batch, and take less memory.
#include "app/compile/batch_slices.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <string>

#include "app/compile/fit_memory.h"
#include "app/compile/repeated_runs.h"
#include "app/compile/step_graphs.h"
#include "app/execute/session.h"
#include "app/graph/passes/fusions.h"
#include "app/graph/passes/weight_gradient_pieces.h"
#include "comm/single_rank.h"
#include "tests/app/compile/limited_training.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

// Returns a network with parallel branches, a local response norm, an average pool and a batch
// norm, which needs the whole batch.
Network branches() {
  Network net("branches", {4, 3, 12, 12});
  const LayerId conv1 = net.add("conv1", Conv2d::square(8, 3, 2, 1, true), net.input());
  const LayerId relu1 = net.add("relu1", Relu{}, conv1);
  const LayerId lrn = net.add("lrn", LocalResponseNorm{3, 0.5f, 0.75f, 1.0f}, relu1);
  const LayerId narrow = net.add("narrow", Conv2d::square(4, 1, 1, 0, true), lrn);
  const LayerId wide = net.add("wide", Conv2d::square(8, 3, 1, 1, true), net.add("n.relu", Relu{}, narrow));
  const LayerId pooled = net.add("pooled", Pool::average(3, 1, 1), lrn);
  const LayerId last = net.add("last", Conv2d::square(4, 1, 1, 0, true), pooled);
  const LayerId joined = net.add("joined", Concat{}, {net.add("w.relu", Relu{}, wide), last, lrn});
  const LayerId conv2 = net.add("conv2", Conv2d::square(8, 3, 1, 1), joined);
  const LayerId norm = net.add("norm", Relu{}, net.add("bn", BatchNorm{}, conv2));
  net.add("fc", Linear{5}, net.add("pool", Pool::global(), norm));
  return net;
}

StepGraph graph_of(const Network& network, int pieces, bool fused = false, bool training = true) {
  GraphOptions options{.training = training, .synchronised_batch_norm = false};
  if (training) options.loss_weights.assign(network.outputs().size(), 0.5f);
  StepGraph graph = build_step_graph(fuse(network), options);
  if (fused) fuse_for_gpu(graph, false, {});
  if (training) cut_weight_gradients(graph, {.most_pieces = pieces, .least_bytes = 0});
  return graph;
}

int cut_convolutions(const StepGraph& graph) {
  return static_cast<int>(std::ranges::count_if(graph.nodes, [](const Node& node) {
    const auto* op = std::get_if<Conv2dBackwardWeights>(&node.op);
    return op != nullptr && op->problem.piece > 0;
  }));
}

// Returns the number of samples in the largest piece. A piece is a part of the batch: a convolution
// computes its weight gradient piece by piece and adds up the results (weight_gradient_pieces.h).
std::int64_t piece_of(const StepGraph& graph) {
  std::int64_t piece = 0;
  for (const Node& node : graph.nodes)
    if (const auto* op = std::get_if<Conv2dBackwardWeights>(&node.op))
      piece = std::max(piece, op->problem.piece);
  return piece;
}

void expect_same_bits(const CompiledGraph& step, const CompiledGraph& other, const std::string& what) {
  GraphRunner expected(step), actual(other);
  for (int run = 0; run < 2; ++run) EXPECT_EQ(actual.run(), expected.run()) << what;
  EXPECT_EQ(actual.gradients(), expected.gradients()) << what;
  EXPECT_EQ(actual.states(), expected.states()) << what;
  EXPECT_TRUE(actual.kept_to_arena()) << what;
}

struct Configuration {
  kernels::Backend backend;
  bool fused;
};
constexpr Configuration kConfigurations[] = {{kernels::Backend::reference, false},
                                             {kernels::Backend::reference, true},
                                             {kernels::Backend::cpu, false}};

class BatchSlices : public testing::Test {
 protected:
  BatchSlices() { omp_set_num_threads(2); }  // with more threads the CPU backend takes no slices
  ~BatchSlices() override { omp_set_num_threads(threads_); }

 private:
  const int threads_ = omp_get_max_threads();
};

TEST_F(BatchSlices, ChangeNoBit) {
  for (const Network& network : {plain(4), plain(5), branches(), every_op()})
    for (const auto& [backend, fused] : kConfigurations) {
      // A slice must start at a multiple of 16 bytes. In every_op, one sample is no multiple, but
      // two samples are.
      const int pieces = network.name() == "every_op" ? 2 : 4;
      const CompiledGraph step = compile_graph(graph_of(network, pieces, fused), backend);
      const SlicedLayers layers = layers_to_slice(step);
      ASSERT_FALSE(layers.names.empty()) << network.name();
      for (std::int64_t samples = layers.samples; samples < network.shape(0)[0]; samples *= 2) {
        const auto sliced = in_slices(step, layers.names, samples, backend);
        ASSERT_TRUE(sliced) << network.name();
        EXPECT_GT(sliced->step.graph.nodes.size(), step.graph.nodes.size() * 5 / 4);
        expect_same_bits(step, sliced->step, network.name());
      }
    }
}

TEST_F(BatchSlices, EvaluationHasTheSameBitsInLessMemory) {
  const Network network = plain(8);
  const SlicedLayers layers = layers_to_slice(compile_graph(graph_of(network, 4), kernels::Backend::cpu));
  const CompiledGraph step = compile_graph(graph_of(network, 4, false, false), kernels::Backend::cpu);
  const auto sliced = in_slices(step, layers.names, layers.samples, kernels::Backend::cpu);
  ASSERT_TRUE(sliced);
  EXPECT_LT(sliced->step.activation_bytes, step.activation_bytes / 2);
  EXPECT_EQ(GraphRunner(sliced->step).run(), GraphRunner(step).run());
}

// A plan says which operations of a step in slices run again, so that the step keeps to a memory
// limit. With every plan the step must have the bits of the step without slices, and take little
// more memory than planned.
TEST_F(BatchSlices, PlansChangeNoBitAndReachLess) {
  for (const Network& network : {plain(8), branches()})
    for (const auto& [backend, fused] : kConfigurations) {
      const CompiledGraph step = compile_graph(graph_of(network, 4, fused), backend);
      const SlicedLayers layers = layers_to_slice(step);
      const auto sliced = in_slices(step, layers.names, layers.samples, backend);
      ASSERT_TRUE(sliced);
      const auto model_of = [](const CompiledGraph& of) { return step_model(of, estimated_node_ms(of, {})); };
      const partition::RecomputePlanner planner(model_of(sliced->step));
      const std::int64_t whole = partition::RecomputePlanner(model_of(step)).least().live_bytes,
                         least = planner.least().live_bytes;
      // Buffers of different sizes leave gaps between them, so the step takes more bytes than
      // planned. The CPU backend has a larger tolerance, because the sizes of its buffers and
      // scratch memory depend on the processor and on the number of threads.
      const bool repeats = backend == kernels::Backend::reference;
      const int most_percent = repeats ? 108 : 125;
      EXPECT_LE(least, repeats ? whole - 1 : whole) << network.name();
      for (int part = 0; part <= 4; ++part) {
        const std::int64_t limit = least + (step.activation_bytes - least) * part / 4;
        const auto plan = planner.plan(limit);
        ASSERT_TRUE(plan) << network.name() << " within " << limit;
        const CompiledGraph limited = with_schedule(sliced->step, plan->schedule, backend, 0);
        EXPECT_GE(limited.activation_bytes, plan->live_bytes) << network.name();
        EXPECT_LE(limited.activation_bytes, plan->live_bytes * most_percent / 100) << network.name();
        expect_same_bits(step, limited, network.name());
      }
    }
}

// A convolution counts as large if x and dy together take at least `least_bytes`. The pass must
// divide the weight gradients of all large convolutions and of all convolutions between them.
TEST(CutWeightGradients, CutsTheLargestConvolutions) {
  const Network network = plain(8, 32);
  // Returns how many convolutions are divided, and how many samples a piece has.
  const auto cut = [&](const PieceOptions& options) {
    StepGraph graph = build_step_graph(fuse(network), {});
    cut_weight_gradients(graph, options);
    return std::pair(cut_convolutions(graph), piece_of(graph));
  };
  // x and dy of the six convolutions take 360,448, 524,288, 196,608, 262,144, 98,304 and 131,072
  // bytes.
  EXPECT_EQ(cut({.most_pieces = 4, .least_bytes = 0}), std::pair(6, 2l));
  EXPECT_EQ(cut({.least_bytes = 524'288}), std::pair(1, 4l));
  EXPECT_EQ(cut({.least_bytes = 524'289}), std::pair(0, 0l));
  EXPECT_EQ(cut({.least_bytes = 360'448}), std::pair(2, 4l));
  EXPECT_EQ(cut({.least_bytes = 262'144}), std::pair(4, 2l));
  EXPECT_EQ(cut({.least_bytes = 100'000}), std::pair(6, 2l)) << "at most 4 pieces by default";
  EXPECT_EQ(cut({.most_pieces = 8, .least_bytes = 100'000}), std::pair(6, 1l));
  EXPECT_EQ(cut({.most_pieces = 2, .least_bytes = 100'000}), std::pair(6, 4l));
  EXPECT_EQ(cut({.most_pieces = 1, .least_bytes = 0}), std::pair(0, 0l));
  EXPECT_EQ(cut({}), std::pair(0, 0l)) << "so small a network gains nothing";
}

// If a step reads stored images, the tensor of images has no batch dimension. Weight gradients must
// be divided as in steps that are given a batch.
TEST(CutWeightGradients, StoredImagesAreCutAlike) {
  StepOptions options;
  options.pieces = {.most_pieces = 4, .least_bytes = 0};
  options.input.kind = InputOptions::Kind::resident;
  options.input.stored = {3, 16, 16};
  options.input.resident_images = 100;
  options.input.mean = options.input.std = {0.5f, 0.5f, 0.5f};
  const StepGraph graph = make_step_graph(fuse(plain(8)), options, 1, true);
  EXPECT_GE(graph.transforms, 0);
  EXPECT_EQ(cut_convolutions(graph), 6);
  EXPECT_EQ(piece_of(graph), 2);
}

// A convolution before a batch norm gets its gradient only from the whole batch, so its weight
// gradient must not be divided.
TEST(CutWeightGradients, LeavesConvolutionsBeforeBatchNormsWhole) {
  const StepGraph graph = graph_of(branches(), 4);
  for (const Node& node : graph.nodes) {
    const auto* op = std::get_if<Conv2dBackwardWeights>(&node.op);
    if (op == nullptr) continue;
    EXPECT_EQ(op->problem.piece, node.layer == "conv2" ? 0 : 1) << node.layer;
  }
}

class SlicedTraining : public LimitedTraining {
 protected:
  SlicedTraining() : LimitedTraining(plain(16, 192, 16)) {
    options_.pieces = {.least_bytes = 16 << 20};
    valid_ = 15;
    learning_rate_ = 0.05f;
  }
};

TEST_F(SlicedTraining, ReachesLimitsBelowOneOperationsNeed) {
  const auto expected = run(0);
  const std::int64_t most = bytes_;
  EXPECT_EQ(fit_.slices, 1);
  const CompiledSteps steps = compile_steps(network_, options_, {&ranks_, &ranks_, nullptr});
  const MemoryFitter fitter(steps, options_, {}, estimated_node_ms(*steps.train, options_));
  const std::int64_t least = fitter.least().bytes;
  EXPECT_LT(least, most * 2 / 5);
  for (const std::int64_t limit : {most * 2 / 3, most / 2, least}) {
    EXPECT_EQ(run(limit), expected) << limit;
    EXPECT_LE(bytes_, limit);
    EXPECT_TRUE(fit_.fitted);
  }
  EXPECT_GT(fit_.slices, 1);
  EXPECT_TRUE(std::ranges::find(fit_.sliced, "block0.conv0") != fit_.sliced.end());
  EXPECT_THROW(run(least - (1 << 16)), std::exception);
}

}  // namespace
}  // namespace convoy::app
