// Tests the results of whole training steps on networks that have every kind of layer. Compares
// gradients with central differences of the loss, fused with unfused steps, planned memory with
// separate buffers, and backends with each other.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

using kernels::Backend;

std::vector<float> direction(const ParameterSpec& spec) {
  std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
  initialize({spec.name, spec.shape, Initializer::normal(1)}, 29, values.data());
  double norm = 0;
  for (const float value : values) norm += double(value) * value;
  for (float& value : values) value = static_cast<float>(value / std::sqrt(norm));
  return values;
}

double loss_at(GraphRunner& runner, const GraphParameter& parameter, const std::vector<float>& centre,
               const std::vector<float>& along, double step) {
  std::vector<float> moved = centre;
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += static_cast<float>(step * along[i]);
  runner.write(parameter.tensor, moved);
  return runner.run();
}

// Compares gradients with central differences of the loss, along one random direction per
// parameter.
void expect_central_differences(const Network& network, std::int32_t valid, float label_smoothing,
                                const std::vector<float>& loss_weights = {}) {
  GraphRunner runner(network, {.loss_weights = loss_weights});
  runner.control().hyperparameters.label_smoothing = label_smoothing;
  runner.control().valid = runner.control().global_valid = valid;
  for (std::int32_t i = valid; i < network.shape(0)[0]; ++i) runner.labels()[i] = -1;
  ASSERT_TRUE(std::isfinite(runner.run()));
  const auto gradients = runner.gradients();
  for (const GraphParameter& parameter : runner.graph().parameters) {
    const auto& gradient = gradients.at(parameter.spec.name);
    const std::vector<float> along = direction(parameter.spec), centre = runner.read(parameter.tensor);
    double slope = 0, length = 0;
    for (std::size_t i = 0; i < along.size(); ++i) {
      slope += double(gradient[i]) * along[i];
      length += double(gradient[i]) * gradient[i];
    }
    // The step is so small that a ReLU or a maximum hardly ever switches between the two points.
    const double step = 2e-4;
    const double difference =
        (loss_at(runner, parameter, centre, along, step) - loss_at(runner, parameter, centre, along, -step)) /
        (2 * step);
    runner.write(parameter.tensor, centre);
    EXPECT_NEAR(slope, difference, 2e-4 + 0.01 * std::sqrt(length))
        << network.name() << " " << parameter.spec.name;
  }
}

TEST(StepGradients, AgreeWithCentralDifferences) {
  for (const Network& network : {every_op(), residual(), rectifying(), modern(), activations()}) {
    expect_central_differences(network, 4, 0);
    expect_central_differences(fuse(network), 4, 0);
  }
}

TEST(StepGradients, AgreeWithCentralDifferencesOnAShortBatchWithLabelSmoothing) {
  for (const Network& network : {every_op(), residual(), rectifying(), modern()})
    expect_central_differences(fuse(network), 3, 0.2f);
}

TEST(StepGradients, OfSeveralOutputsAgreeWithCentralDifferences) {
  expect_central_differences(auxiliary(), 3, 0.1f, {1, 0.3f});
  expect_central_differences(fuse(auxiliary()), 4, 0, {0.5f, 2});
}

TEST(Outputs, TheLossIsTheWeightedSumAndTheHitsAreTheMainOutputs) {
  const auto loss_of = [](const std::vector<float>& weights) {
    GraphRunner runner(fuse(auxiliary()), {.loss_weights = weights});
    return runner.run();
  };
  GraphRunner both(fuse(auxiliary()), {.loss_weights = {1, 0.3f}}), main(fuse(auxiliary()), {});
  EXPECT_NEAR(both.run(), loss_of({1, 0}) + 0.3 * loss_of({0, 1}), 1e-6);
  main.run();
  for (int k = 1; k < 4; ++k) EXPECT_EQ(both.metrics()[k], main.metrics()[k]);
}

TEST(Outputs, EvaluationAndAnUnusedOutputLeaveTheAuxiliaryLayersOut) {
  const StepGraph evaluation = build_step_graph(auxiliary(), {.training = false, .loss_weights = {1, 1}});
  for (const Node& node : evaluation.nodes) EXPECT_FALSE(node.layer.starts_with("aux")) << node.layer;
  Network main = auxiliary();
  main.set_outputs({main.outputs()[0]});
  const Network small = without_unused(main);
  EXPECT_EQ(small.parameters().size(), 4u);
  EXPECT_EQ(small.layers().back().name, "fc");
}

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * value;
  return std::sqrt(sum);
}

void expect_close(const std::vector<float>& found, const std::vector<float>& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  std::vector<float> difference(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) difference[i] = found[i] - expected[i];
  EXPECT_LE(norm_of(difference), tolerance * norm_of(expected) + 1e-7) << what;
}

void expect_equal_steps(GraphRunner& found, GraphRunner& expected, double tolerance) {
  const double loss = expected.run();
  EXPECT_NEAR(found.run(), loss, tolerance * loss);
  const auto gradients = found.gradients();
  const auto expected_gradients = expected.gradients();
  ASSERT_EQ(gradients.size(), expected_gradients.size());
  for (const auto& [name, gradient] : expected_gradients)
    expect_close(gradients.at(name), gradient, tolerance, name);
  expect_close(found.states(), expected.states(), tolerance, "running statistics");
}

TEST(Fusion, ChangesNoGradient) {
  for (const Network& network : {every_op(), residual(), rectifying(), modern()}) {
    GraphRunner plain(network, {}), fused(fuse(network), {});
    EXPECT_LT(fused.graph().nodes.size(), plain.graph().nodes.size());
    expect_equal_steps(fused, plain, 1e-5);
  }
}

TEST(Fusion, ChangesNoEvaluation) {
  for (const Network& network : {every_op(), residual(), rectifying(), modern()}) {
    GraphRunner plain(network, {.training = false}), fused(fuse(network), {.training = false});
    const double loss = plain.run();
    EXPECT_NEAR(fused.run(), loss, 1e-5 * loss);
  }
}

// If two tensors that are needed at the same time shared memory, one would overwrite the other. So
// a step with planned memory must have the bits of a step in which no tensors share memory.
TEST(MemoryPlan, GivesTheBitsOfBuffersThatShareNothing) {
  for (const Network& network : {every_op(), residual(), rectifying(), modern()})
    for (const Network& variant : {network, fuse(network)})
      for (const Backend backend : {Backend::reference, Backend::cpu}) {
        GraphRunner planned(variant, {}, backend, Placement::planned);
        GraphRunner separate(variant, {}, backend, Placement::separate);
        // In the second step the memory holds old data, so a read of memory that was not written
        // may show.
        for (int step = 0; step < 2; ++step) {
          EXPECT_EQ(planned.run(), separate.run());
          EXPECT_EQ(planned.gradients(), separate.gradients()) << network.name();
          EXPECT_EQ(planned.states(), separate.states()) << network.name();
        }
      }
}

TEST(Backends, AgreeOnWholeSteps) {
  for (const Network& network : {every_op(), residual(), rectifying(), grouped(), modern()}) {
    GraphRunner oracle(fuse(network), {}), cpu(fuse(network), {}, Backend::cpu);
    expect_equal_steps(cpu, oracle, 2e-4);
  }
}

}  // namespace
}  // namespace convoy::app
