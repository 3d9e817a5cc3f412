// Tests how many bytes ModelMemory plans and where it reserves them. For gradients that ranks
// share, it must call the functions of a SharedMemory.
#include "app/execute/model_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "app/graph/graph_builder.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

CompiledGraph step(bool training) {
  return compile_graph(build_step_graph(fuse(residual()), {.training = training}), kernels::Backend::cpu);
}

TEST(ModelMemory, CountsTheScratchOnlyIfGradientsAreShared) {
  const CompiledSteps steps(step(true), step(false), {});
  constexpr std::size_t kScratch = 1 << 20;
  std::vector<std::byte> shared;
  SharedMemory request;
  StepOptions options;
  const auto bytes = [&] {
    const ModelMemory memory(steps, options, request);
    EXPECT_EQ(memory.plan().has(Region::all_reduce), !shared.empty());
    EXPECT_EQ(reinterpret_cast<std::byte*>(memory.flat_gradients()) == shared.data(), !shared.empty());
    return memory.plan().total();
  };
  const std::int64_t plain = bytes();
  request.scratch = [](std::size_t) { return kScratch; };
  request.gradients = [](std::size_t) { return nullptr; };
  EXPECT_EQ(bytes(), plain);
  request.gradients = [&](std::size_t wanted) {
    shared.resize(wanted);
    return std::shared_ptr<std::byte>(std::shared_ptr<void>(), shared.data());
  };
  EXPECT_EQ(bytes(), plain + std::int64_t{kScratch});
  // A plan above the limit must be refused before any memory is reserved.
  options.memory_limit = plain + std::int64_t{kScratch} - 1;
  request.gradients = [](std::size_t) -> std::shared_ptr<std::byte> {
    ADD_FAILURE() << "shared gradients were reserved";
    return nullptr;
  };
  EXPECT_THROW(bytes(), std::runtime_error);
}

// The regions, whose sizes the configuration table and summary.json show, must follow each other
// without gaps and fill the whole arena.
TEST(MemoryPlan, RegionsFollowEachOther) {
  const CompiledSteps steps(step(true), step(false), {});
  const MemoryPlan plan(steps, {}, {});
  std::int64_t next = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Region::count); ++i) {
    const auto region = static_cast<Region>(i);
    if (!plan.has(region)) continue;
    EXPECT_EQ(plan.offset(region), next) << name_of(region);
    next += plan.bytes(region);
  }
  EXPECT_EQ(plan.total(), next);
  EXPECT_FALSE(plan.has(Region::mix));
  EXPECT_EQ(plan.uses().front().purpose, "images") << "members may share them";
  EXPECT_EQ(plan.uses().back().purpose, "gradients");
}

TEST(ModelMemory, SegmentsOfParametersStartAtCacheLines) {
  const FlatLayout flat(step(true));
  std::int64_t padding = flat.elements;
  for (const kernels::ParameterSegment& segment : flat.segments) {
    EXPECT_EQ(segment.offset * 2 % 256, 0) << segment.offset;
    padding -= segment.count;
  }
  EXPECT_GT(padding, 0) << "no segment is padded, so the test shows nothing";
}

}  // namespace
}  // namespace convoy::app
