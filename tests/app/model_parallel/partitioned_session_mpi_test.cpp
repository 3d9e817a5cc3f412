// Divides a training step at random into stages, one for each rank, on the host and, if each rank
// has a GPU, on GPUs. Every bit must be the same as on one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "app/model_parallel/dependences.h"
#include "app/model_parallel/stage_graph.h"
#include "comm/single_rank.h"
#include "tests/app/execute/ranks_on.h"
#include "tests/app/execute/train_step.h"
#include "tests/app/execute/whole_session.h"
#include "tests/app/model/tiny_networks.h"
#include "tests/brief.h"
#include "tests/mpi/world.h"

namespace convoy::app {
namespace {

using kernels::Backend;
using test::world;

constexpr int kSteps = 4;

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> tensors;
};

class PartitionedSession : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (const std::string missing = test::missing_devices(GetParam()); !missing.empty())
      GTEST_SKIP() << missing;
    world_ = test::collectives_on(GetParam(), comm::Sums::small);
    stages_ = test::collectives_on(GetParam(), comm::Sums::small);
  }

  StepOptions options(Precision precision) const {
    StepOptions options;
    options.backend = GetParam();
    options.precision = precision;
    return options;
  }
  std::vector<Precision> precisions() const {
    if (GetParam() != Backend::cuda) return {Precision::fp32};
    return {Precision::fp32, Precision::tf32, Precision::bf16};
  }

  // A function that chooses the stage for a group of nodes that must stay together. `kinds` are the
  // kinds of these nodes.
  using Choice = std::function<int(const std::set<std::string>& kinds)>;
  static StepPlacement place(const Network& network, const StepOptions& options, const Choice& choose) {
    comm::SingleRank alone;
    const CompiledSteps steps = compile_steps(network, options, {&alone, &alone, nullptr});
    const std::vector<int> group = find_dependences(steps.train->graph).group;
    std::map<int, std::set<std::string>> kinds;
    for (std::size_t node = 0; node < group.size(); ++node)
      kinds[group[node]].emplace(steps.train->graph.nodes[node].name());
    std::map<int, int> stage;
    for (const auto& [of_group, its_kinds] : kinds) stage[of_group] = choose(its_kinds);
    StepPlacement placement;
    placement.stages = world().size();
    for (const int of_node : group) placement.stage_of.push_back(stage.at(of_node));
    placement.times = sequential_times(steps.train->graph);
    return placement;
  }

  static Choice at_random(unsigned seed) {
    return [random = std::mt19937(seed)](const std::set<std::string>&) mutable {
      return static_cast<int>(random() % static_cast<unsigned>(world().size()));
    };
  }
  // Puts groups that consist of batch norms on the last stage, and all others on the first. So the
  // last stage has parameters, but needs no bf16 copies, which only matrix products read.
  static int norms_apart(const std::set<std::string>& kinds) {
    const auto is_norm = [](const std::string& kind) { return kind.starts_with("batch_norm"); };
    return std::ranges::all_of(kinds, is_norm) ? world().size() - 1 : 0;
  }

  static Choice all_on(int stage) {
    return [stage](const std::set<std::string>&) { return stage; };
  }

  void expect_bits_of_one_rank(const Network& network, Precision precision, const Choice& choose) {
    const StepOptions with = options(precision);
    Session whole = whole_session(network, with, alone_);
    const Trained expected = train(network, whole);
    const StepPlacement placement = place(network, with, choose);
    const RankGroups groups{world_.get(), &alone_, stages_.get()};
    Session stage(stage_of_steps(compile_steps(network, with, groups), placement, stages_->rank(), with),
                  with, groups);
    stage.connect_stages();
    const Trained found = train(network, stage);
    EXPECT_EQ(found.losses, expected.losses) << network.name();
    for (const auto& [name, values] : found.tensors) EXPECT_EQ(values, expected.tensors.at(name)) << name;
    const auto held = static_cast<std::int64_t>(found.tensors.size());
    EXPECT_EQ(world().all_reduce(held, comm::ReduceOp::sum, "tensors of the stages"),
              std::ssize(expected.tensors));
  }

  static Trained train(const Network& network, Session& session) {
    const std::int64_t batch = network.shape(0)[0];
    StepInput& input = session.input();
    if (session.memory().has_images()) {
      std::vector<float> images(static_cast<std::size_t>(network.shape(0).elements()));
      initialize({"images", network.shape(0), Initializer::normal(1)}, 17, images.data());
      session.tensors().write(input.images(), images);
    }
    for (std::size_t i = 0; i < input.labels().size(); ++i)
      input.labels()[i] = static_cast<std::int32_t>(i * 7 % 3);
    input.control().valid = input.control().global_valid = static_cast<std::int32_t>(batch);
    input.control().learning_rate = 0.01f;
    Trained trained;
    for (int step = 0; step < kSteps; ++step) {
      input.control().step = static_cast<std::uint64_t>(step);
      trained.losses.push_back(test::train_step(session).loss());
    }
    session.start(StepKind::evaluate);
    trained.losses.push_back(session.finish_step().metrics[0].loss());
    for (const auto* list : {&session.memory().parameters(), &session.memory().states()})
      for (const PersistentTensor& tensor : *list)
        trained.tensors[tensor.name] = session.tensors().read(tensor);
    return trained;
  }

  std::unique_ptr<comm::Collectives> world_, stages_;
  comm::SingleRank alone_;
};

INSTANTIATE_TEST_SUITE_P(On, PartitionedSession, testing::Values(Backend::cpu, Backend::cuda),
                         [](const auto& info) { return info.param == Backend::cuda ? "Cuda" : "Cpu"; });

TEST_P(PartitionedSession, HasTheBitsOfOneRank) {
  unsigned seed = 0;
  for (const Precision precision : precisions())
    for (const Network& network : {every_op(), residual(), rectifying()})
      expect_bits_of_one_rank(network, precision, at_random(++seed));
}

TEST_P(PartitionedSession, StagesMayHaveOnlyBatchNorms) {
  for (const Precision precision : precisions()) expect_bits_of_one_rank(residual(), precision, norms_apart);
}

// Only the first or only the last stage has nodes, as in a plan that keeps the step on one rank.
// The other stages must still take part in the sum of the losses.
TEST_P(PartitionedSession, StagesMayBeEmpty) {
  for (const Precision precision : precisions())
    for (const int stage : {0, world().size() - 1})
      expect_bits_of_one_rank(residual(), precision, all_on(stage));
}

}  // namespace
}  // namespace convoy::app
