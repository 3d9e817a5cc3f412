// Tests training steps that mix samples: their results, and on which stage (one rank's part of a
// partitioned step) their nodes and parameters are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/execute/model_memory.h"
#include "app/graph/passes/precision.h"
#include "app/model_parallel/dependences.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

using kernels::Backend;
using kernels::MixParameters;

template <typename Op>
const Node& node_of(const StepGraph& graph) {
  return *std::ranges::find_if(graph.nodes, &Node::is<Op>);
}
template <typename Op>
std::ptrdiff_t count_of(const StepGraph& graph) {
  return std::ranges::count_if(graph.nodes, &Node::is<Op>);
}

std::vector<float> mixed_images(const std::vector<float>& images, const Shape& shape,
                                const MixParameters& mix, std::int64_t valid) {
  std::vector<float> mixed(images.size(), 0.0f);
  const std::int64_t sample = shape.elements() / shape[0];
  for (std::int64_t i = 0; i < valid * sample; ++i) {
    const std::int64_t n = i / sample, pair = n % 2 == 0 ? n + 1 : n - 1;
    const std::int64_t other = (pair < valid ? pair : n) * sample + i % sample;
    const std::int64_t y = i / shape[3] % shape[2], x = i % shape[3];
    const bool cut = y >= mix.y && y < mix.y + mix.height && x >= mix.x && x < mix.x + mix.width;
    const auto at = static_cast<std::size_t>(i), partner = static_cast<std::size_t>(other);
    mixed[at] =
        cut ? images[partner] : mix.pixel_share * images[at] + (1 - mix.pixel_share) * images[partner];
  }
  return mixed;
}

// Compares a step that mixes images with two plain steps, whose images were mixed beforehand. One
// plain step has the labels of the images themselves, and the other has the labels of the images
// that were mixed into them. Loss and gradients must be the mean of those of the plain steps,
// weighted by the share of each label.
void expect_shares(const Network& network, Backend backend, const MixParameters& mix, std::int32_t valid) {
  GraphRunner mixed(network, {.mixing = true}, backend);
  GraphRunner plain(network, {}, backend);
  for (GraphRunner* runner : {&mixed, &plain}) {
    runner->control().hyperparameters.label_smoothing = 0.1f;
    runner->control().valid = runner->control().global_valid = valid;
    for (std::int32_t i = valid; i < network.shape(0)[0]; ++i) runner->labels()[i] = -1;
  }
  mixed.mix(mix);
  plain.write(plain.graph().images,
              mixed_images(mixed.read(mixed.graph().images), network.shape(0), mix, valid));
  const double loss = mixed.run();
  const auto gradients = mixed.gradients();
  const double own = plain.run(), hits = plain.metrics()[1];
  const auto of_own = plain.gradients();
  EXPECT_EQ(mixed.metrics()[1], hits);
  // Give each image the label of its partner.
  for (std::int32_t i = 0; i + 1 < valid; i += 2) std::swap(plain.labels()[i], plain.labels()[i + 1]);
  const double share = mix.label_share;
  EXPECT_NEAR(loss, share * own + (1 - share) * plain.run(), 1e-5 * loss);
  for (const auto& [name, gradient] : plain.gradients()) {
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double expected = share * double(of_own.at(name)[i]) + (1 - share) * double(gradient[i]);
      error += std::pow(gradients.at(name)[i] - expected, 2);
      norm += expected * expected;
    }
    EXPECT_LE(std::sqrt(error), 1e-4 * std::sqrt(norm) + 1e-6) << name;
  }
}

TEST(MixedStep, SharesTheLossOfMixedImagesBetweenBothLabels) {
  for (const Network& network : {fuse(every_op()), fuse(residual())})
    for (const Backend backend : {Backend::reference, Backend::cpu})
      for (const auto& [mix, valid] :
           {std::pair{MixParameters{0.3f, 0.3f}, 3}, {MixParameters{1, 0.8f, 1, 2, 3, 5}, 4}})
        expect_shares(network, backend, mix, valid);
}

TEST(MixedStep, MixingNothingGivesTheBitsOfAPlainStep) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    GraphRunner mixed(fuse(residual()), {.mixing = true}, backend), plain(fuse(residual()), {}, backend);
    mixed.mix({});
    EXPECT_EQ(mixed.run(), plain.run());
    EXPECT_EQ(mixed.gradients(), plain.gradients());
  }
}

TEST(MixedStep, OnlyTrainingMixes) {
  const StepGraph train = build_step_graph(every_op(), {.mixing = true});
  EXPECT_TRUE(train.nodes.front().is<MixForward>());
  EXPECT_EQ(count_of<MixForward>(train), 1);
  EXPECT_EQ(node_of<SoftmaxCrossEntropyBackward>(train).inputs.size(), 3u);
  for (const bool training : {false, true}) {
    const StepGraph graph = build_step_graph(every_op(), {.training = training, .mixing = !training});
    EXPECT_EQ(count_of<MixForward>(graph), 0);
    EXPECT_EQ(node_of<SoftmaxCrossEntropyForward>(graph).inputs.size(), 2u);
    EXPECT_EQ(graph.mix_of_images, -1);
    EXPECT_EQ(graph.mix_of_labels, -1);
  }
}

TEST(MixedStep, MixesInBf16WhereActivationsAre) {
  StepGraph graph = build_step_graph(fuse(every_op()), {.mixing = true});
  store_in_bf16(graph);
  const auto type_of = [&](TensorId id) { return graph.tensors[static_cast<std::size_t>(id)].dtype; };
  EXPECT_EQ(type_of(graph.images), kernels::DType::bf16);
  EXPECT_EQ(type_of(graph.nodes.front().outputs[0]), kernels::DType::bf16);
  EXPECT_EQ(type_of(graph.mix_of_images), kernels::DType::i32);
}

// In a partitioned step, the first layer and the loss may be on different stages. Images must be
// mixed on the stage of the first layer, where evaluation reads them without mixing.
TEST(MixedStep, ImagesMixOnTheStageOfTheFirstLayerNotOfTheLoss) {
  const StepGraph graph = build_step_graph(fuse(residual()), {.mixing = true});
  const StepDependences dependences = find_dependences(graph);
  const auto group_of = [&](const Node& node) {
    return dependences.group[static_cast<std::size_t>(&node - graph.nodes.data())];
  };
  const int mix = group_of(graph.nodes.front());
  EXPECT_EQ(mix, group_of(node_of<Conv2dForward>(graph)));
  EXPECT_NE(mix, group_of(node_of<SoftmaxCrossEntropyForward>(graph)));
}

TEST(MixedStep, FindsItsParametersInMemory) {
  const auto compiled = [](bool training, bool mixing) {
    return compile_graph(build_step_graph(fuse(residual()), {.training = training, .mixing = mixing}),
                         Backend::cpu);
  };
  const CompiledSteps steps(compiled(true, true), compiled(false, true), {});
  const CompiledGraph& train = *steps.train;
  const ModelMemory memory(steps, {});
  ASSERT_TRUE(memory.has_mix());
  EXPECT_EQ(memory.address(train, train.graph.mix_of_images), memory.mix());
  EXPECT_EQ(memory.address(train, train.graph.mix_of_labels), memory.mix());
  EXPECT_FALSE(ModelMemory({compiled(true, false), compiled(false, true), {}}, {}).has_mix());
}

}  // namespace
}  // namespace convoy::app
