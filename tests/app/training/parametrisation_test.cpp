// Tests µP (--parametrisation mup): the table of factors, and that one step changes the activations
// by the same amount at every width. In the standard parametrisation the change of the logits grows
// with the width.
#include "app/training/parametrisation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "app/compile/update_kernels.h"
#include "app/model/zoo/zoo.h"
#include "app/training/checkpoint/session_state.h"
#include "comm/single_rank.h"
#include "tests/app/execute/train_step.h"
#include "tests/app/execute/whole_session.h"
#include "tests/app/graph/graph_runner.h"

namespace convoy::app {
namespace {

using kernels::OptimizerKind;

constexpr std::int64_t kBatch = 8;

Network network_of(const std::string& name, Parametrisation parametrisation = Parametrisation::standard,
                   OptimizerKind optimizer = OptimizerKind::sgd, std::int64_t base_width = 1) {
  const Shape input{kBatch, 3, 8, 8};
  Network network = make_network(name, input, 10);
  if (parametrisation == Parametrisation::mup) parametrise_by_width(network, base_width, optimizer);
  return network;
}

std::map<std::string, ParameterSpec> specs_of(const Network& network) {
  std::map<std::string, ParameterSpec> specs;
  for (const ParameterSpec& spec : network.parameters()) specs.emplace(spec.name, spec);
  return specs;
}

struct Factors {
  const char* name;
  double deviation, sgd, adamw;
};

// The factors are those of table 3 of the µP paper (parametrisation.h) for a network that is four
// times as wide as the base. The first convolution and the first norm of wide residual networks
// always have 16 channels.
TEST(Parametrisation, HasTheFactorsOfThePaper) {
  const auto base = specs_of(network_of("wrn10_2"));
  const auto sgd = specs_of(network_of("wrn10_8", Parametrisation::mup, OptimizerKind::sgd, 2));
  const auto adamw = specs_of(network_of("wrn10_8", Parametrisation::mup, OptimizerKind::adamw, 2));
  for (const Factors& f :
       {Factors{"conv1.weight", 1, 1, 1}, Factors{"layer1.0.bn1.weight", 1, 1, 1},
        Factors{"layer1.0.conv1.weight", 1, 4, 1}, Factors{"layer1.0.shortcut.weight", 1, 4, 1},
        Factors{"layer1.0.bn2.weight", 1, 4, 1}, Factors{"layer1.0.bn2.bias", 1, 4, 1},
        Factors{"layer1.0.conv2.weight", 0.5, 1, 0.25}, Factors{"layer2.0.shortcut.weight", 0.5, 1, 0.25},
        Factors{"fc.weight", 0.25, 0.25, 0.25}, Factors{"fc.bias", 1, 1, 1}}) {
    const double value = base.at(f.name).initializer.value;
    const double factor = base.at(f.name).initializer.kind == Initializer::Kind::constant ? 1 : f.deviation;
    EXPECT_NEAR(sgd.at(f.name).initializer.value, factor * value, 1e-12) << f.name;
    EXPECT_NEAR(adamw.at(f.name).initializer.value, factor * value, 1e-12) << f.name;
    EXPECT_EQ(sgd.at(f.name).width_rate, f.sgd) << f.name;
    EXPECT_EQ(adamw.at(f.name).width_rate, f.adamw) << f.name;
    EXPECT_EQ(sgd.at(f.name).rate, 1) << f.name;
  }
}

TEST(Parametrisation, OfTheBaseWidthIsTheStandardOne) {
  const auto standard = specs_of(network_of("wrn16_3"));
  for (const auto& [name, spec] :
       specs_of(network_of("wrn16_3", Parametrisation::mup, OptimizerKind::adamw, 3))) {
    EXPECT_EQ(spec.width_rate, 1) << name;
    EXPECT_EQ(spec.initializer.kind, standard.at(name).initializer.kind) << name;
    EXPECT_EQ(spec.initializer.value, standard.at(name).initializer.value) << name;
  }
}

// A segment is one parameter in the optimizer's flat memory. The product of its rate and its decay
// must not depend on the width of the network.
TEST(Parametrisation, ReachesTheOptimizer) {
  const Network network = network_of("wrn10_4", Parametrisation::mup);
  const CompiledGraph compiled = compile_graph(build_step_graph(network, {}), kernels::Backend::cpu);
  const FlatLayout flat(compiled);
  bool changed = false;
  for (std::size_t i = 0; i < flat.segments.size(); ++i) {
    const ParameterSpec& spec = compiled.graph.parameters[static_cast<std::size_t>(flat.parameter[i])].spec;
    EXPECT_EQ(flat.segments[i].rate, spec.width_rate) << spec.name;
    EXPECT_EQ(flat.segments[i].rate * flat.segments[i].decay, spec.decay ? 1 : 0) << spec.name;
    changed = changed || spec.width_rate != 1;
  }
  EXPECT_TRUE(changed);
}

using Values = std::map<std::string, std::vector<float>>;

// The outputs of the three stages, of the layer before the head, and the logits.
constexpr const char* kLayers[] = {"layer1.0.add", "layer2.0.add", "layer3.0.add", "avgpool", "fc"};

// Runs the network with the session's parameters and returns the outputs of kLayers.
Values activations_of(GraphRunner& runner, Session& session) {
  CheckpointState state;
  SessionState(session).capture(state);
  std::map<std::string, const SavedTensor*> saved;
  for (const SavedTensor& tensor : state.parameters) saved[tensor.name] = &tensor;
  for (const GraphParameter& parameter : runner.graph().parameters)
    runner.write(parameter.tensor, saved.at(parameter.spec.name)->values);
  runner.run();
  Values all;
  for (TensorId id = 0; id < std::ssize(runner.graph().tensors); ++id) {
    const std::string& name = runner.graph().tensors[static_cast<std::size_t>(id)].name;
    if (std::ranges::find(kLayers, name) != std::end(kLayers)) all[name] = runner.read(id);
  }
  return all;
}

// Returns the root mean square of the change of each of kLayers in one step.
std::map<std::string, double> changes(const Network& network, OptimizerKind optimizer, std::uint64_t seed) {
  comm::SingleRank ranks;
  StepOptions options;
  options.optimizer.kind = optimizer;
  options.members[0].seed = seed;
  Session session = whole_session(network, options, ranks);
  GraphRunner runner(network, {}, kernels::Backend::cpu, Placement::separate);
  session.tensors().write(session.input().images(), runner.read(runner.graph().images));
  std::copy_n(runner.labels(), kBatch, session.input().labels().begin());
  kernels::StepControl& control = session.input().control();
  control.valid = control.global_valid = kBatch;
  control.learning_rate = optimizer == OptimizerKind::adamw ? 1e-4f : 1e-3f;
  const Values before = activations_of(runner, session);
  test::train_step(session);
  const Values after = activations_of(runner, session);
  std::map<std::string, double> all;
  for (const auto& [name, values] : before) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += std::pow(double(after.at(name)[i]) - values[i], 2);
    all[name] = std::sqrt(sum / static_cast<double>(values.size()));
  }
  return all;
}

// Freezes the parameters below the first wide layer. In the first step of SGD their gradient is a
// sum of independent terms over the channels of that layer, so it falls as 1/√width until the head
// has learned something.
void freeze_stem(Network& network) {
  for (LayerId id = 0; id < std::ssize(network.layers()); ++id)
    for (const ParameterSpec& spec : network.layers()[static_cast<std::size_t>(id)].parameters)
      if (spec.name == "conv1.weight" || spec.name.starts_with("layer1.0.bn1"))
        network.parameter(id, spec.key).rate = 0;
}

// Returns for each layer the slope of log |change| against log width, over widths 1 to 8.
std::map<std::string, double> slopes(Parametrisation parametrisation, OptimizerKind optimizer, int seeds) {
  std::map<std::string, double> all;
  for (const int width : {1, 2, 4, 8})
    for (int seed = 1; seed <= seeds; ++seed) {
      Network network = network_of("wrn10_" + std::to_string(width), parametrisation, optimizer);
      if (optimizer == OptimizerKind::sgd) freeze_stem(network);
      // Least squares: log2 of the widths has mean 1.5, and the squared distances from it add up to
      // 5.
      for (const auto& [name, change] : changes(network, optimizer, static_cast<std::uint64_t>(seed)))
        all[name] += (std::log2(width) - 1.5) / 5 * std::log2(change) / seeds;
    }
  return all;
}

TEST(Parametrisation, OneStepChangesActivationsAlikeAtEveryWidth) {
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    const auto mup = slopes(Parametrisation::mup, optimizer, 4);
    const auto standard = slopes(Parametrisation::standard, optimizer, 1);
    ASSERT_EQ(mup.size(), std::size(kLayers));
    for (const auto& [name, slope] : mup) {
      EXPECT_NEAR(slope, 0, 0.1) << name;
      EXPECT_GT(standard.at(name), 0.3) << name;
    }
    EXPECT_GT(standard.at("fc"), 0.7);
  }
}

}  // namespace
}  // namespace convoy::app
