// Dropping activations and recomputing them changes which tensors are live, but no bit of the
// results.
#include "app/graph/passes/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/execute/session.h"
#include "app/graph/graph_builder.h"
#include "comm/single_rank.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

// Returns a stack of blocks whose memory need is set by its activations, not by the peak of
// backward.
Network deep() {
  Network net("deep", {8, 3, 16, 16});
  LayerId x = net.add("stem", Conv2d::square(16, 3, 1, 1), net.input());
  for (int block = 0; block < 6; ++block) {
    const std::string name = "block" + std::to_string(block);
    const LayerId conv1 = net.add(name + ".conv1", Conv2d::square(16, 3, 1, 1), x);
    const LayerId norm1 = net.add(name + ".bn1", BatchNorm{}, conv1);
    const LayerId relu1 = net.add(name + ".relu1", Relu{}, norm1);
    const LayerId conv2 = net.add(name + ".conv2", Conv2d::square(16, 3, 1, 1), relu1);
    const LayerId norm2 = net.add(name + ".bn2", BatchNorm{}, conv2);
    x = net.add(name + ".relu2", Relu{}, net.add(name + ".add", Add{}, {norm2, x}));
  }
  net.add("fc", Linear{5}, net.add("pool", Pool::global(), x));
  return net;
}

TEST(Recompute, BackwardReadsNothingThatWasDroppedAndEverythingIsMadeBeforeItIsRead) {
  for (const Network& network : {deep(), residual(), every_op(), rectifying()}) {
    StepGraph graph = build_step_graph(fuse(network), {});
    std::vector<TensorId> dropped;
    for (const auto& candidate : recompute_candidates(graph)) dropped.push_back(candidate.tensor);
    recompute(graph, dropped);
    std::vector<bool> written(graph.tensors.size(), false);
    for (const Node& node : graph.nodes) {
      for (const TensorId input : node.inputs) {
        const auto at = static_cast<std::size_t>(input);
        EXPECT_TRUE(written[at] || graph.tensors[at].role != TensorRole::activation)
            << node.name() << " of " << node.layer;
        if (node.phase == Phase::backward) {
          EXPECT_EQ(std::ranges::find(dropped, input), dropped.end()) << node.name() << " of " << node.layer;
        }
      }
      for (const TensorId output : node.outputs) written[static_cast<std::size_t>(output)] = true;
    }
  }
}

TEST(Recompute, ALimitIsMetAndChangesNoBit) {
  comm::SingleRank ranks;
  StepOptions options;
  options.backend = kernels::Backend::reference;
  options.synchronised_batch_norm = false;
  const Network network = deep();
  const auto run = [&](std::int64_t limit, std::int64_t& bytes) {
    options.memory_limit = limit;
    Session session(network, options, ranks);
    bytes = session.memory().plan().total();
    std::vector<float> images(static_cast<std::size_t>(network.shape(0).elements()));
    initialize({"images", network.shape(0), Initializer::normal(1)}, 17, images.data());
    session.write(session.images(), images);
    for (std::size_t i = 0; i < session.labels().size(); ++i)
      session.labels()[i] = static_cast<std::int32_t>(i % 5);
    session.control().valid = session.control().global_valid = 8;
    session.control().learning_rate = 0.1f;
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) losses.push_back(session.train_step().loss());
    std::vector<std::vector<float>> kept;
    for (const auto* list : {&session.memory().parameters(), &session.memory().states()})
      for (const PersistentTensor& tensor : *list) kept.push_back(session.read(tensor));
    return std::pair(losses, kept);
  };
  std::int64_t free_bytes = 0, limited_bytes = 0;
  const auto expected = run(0, free_bytes);
  EXPECT_LT(expected.first[2], expected.first[0]) << "nothing was learned";
  const std::int64_t limit = free_bytes * 85 / 100;
  EXPECT_EQ(run(limit, limited_bytes), expected);
  EXPECT_LE(limited_bytes, limit);
  EXPECT_THROW(run(free_bytes / 10, limited_bytes), std::runtime_error);
}

}  // namespace
}  // namespace convoy::app
