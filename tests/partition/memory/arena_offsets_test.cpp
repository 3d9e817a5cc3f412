#include "partition/memory/arena_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "partition/graph/generators.h"

namespace convoy::partition {
namespace {

TEST(ArenaOffsets, BuffersThatLiveTogetherNeverOverlap) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<BufferLifetime> buffers(1 + random() % 60);
    for (auto& buffer : buffers) {
      buffer.bytes = static_cast<std::int64_t>(random() % 5000);
      buffer.first = static_cast<std::int64_t>(random() % 40);
      buffer.last = buffer.first + static_cast<std::int64_t>(random() % 10);
    }
    const ArenaOffsets plan = assign_offsets(buffers, 64);
    for (std::size_t a = 0; a < buffers.size(); ++a) {
      EXPECT_EQ(plan.offset[a] % 64, 0);
      EXPECT_LE(plan.offset[a] + buffers[a].bytes, plan.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        const bool together = buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last;
        const bool apart = plan.offset[a] + buffers[a].bytes <= plan.offset[b] ||
                           plan.offset[b] + buffers[b].bytes <= plan.offset[a];
        EXPECT_TRUE(!together || apart) << "buffers " << a << " and " << b;
      }
    }
  }
}

TEST(ArenaOffsets, ReusesFreedSpace) {
  const ArenaOffsets plan = assign_offsets({{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}}, 256);
  EXPECT_EQ(plan.bytes, 2048);
  EXPECT_EQ(plan.lower_bound, 2048);
}

TEST(ArenaOffsets, RefusesImpossibleLifetimes) {
  EXPECT_THROW(assign_offsets({{-1, 0, 1}}), std::invalid_argument);
  EXPECT_THROW(assign_offsets({{8, 3, 1}}), std::invalid_argument);
}

// The tensors are activations of training steps. Each lives from the operation that makes it to the
// last one that reads it. The operations run in topological order.
TEST(ArenaOffsets, TrainingStepsComeWithinFivePerCentOfTheLiveBytes) {
  for (const char* family : {"recurrent", "crn", "wide-resnet", "transformer", "e3d"}) {
    GeneratorOptions options;
    options.nodes = 1200;
    const TaskGraph graph = generate_task_graph(family, options);
    std::vector<std::int64_t> position(graph.node_count());
    for (NodeIndex i = 0; i < graph.node_count(); ++i) position[graph.topological_order()[i]] = i;
    std::vector<BufferLifetime> buffers;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      buffers.push_back({graph.output_bytes(node), position[node], position[node]});
      for (const NodeIndex next : graph.successors(node))
        buffers.back().last = std::max(buffers.back().last, position[next]);
    }
    const ArenaOffsets plan = assign_offsets(buffers);
    EXPECT_LE(static_cast<double>(plan.bytes), 1.05 * static_cast<double>(plan.lower_bound)) << family;
    std::printf("%s: %.4f of the live bytes\n", family,
                static_cast<double>(plan.bytes) / static_cast<double>(plan.lower_bound));
  }
}

}  // namespace
}  // namespace convoy::partition
