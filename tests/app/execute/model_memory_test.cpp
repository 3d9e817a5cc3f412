// Which bytes a run says that it needs, and where what the ranks share comes from.
#include "app/execute/model_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/graph/graph_builder.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

CompiledGraph step(bool training) {
  static kernels::StepControl control;
  GraphOptions options;
  options.training = training;
  return compile_graph(build_step_graph(fuse(residual()), options), kernels::Backend::cpu, &control);
}

bool counted(const ModelMemory& memory, std::string_view purpose) {
  return std::ranges::find(memory.uses(), purpose, &MemoryUse::purpose) != memory.uses().end();
}

TEST(ModelMemory, CountsWhatSharingReservesWhereItIsShared) {
  const CompiledGraph train = step(true), evaluate = step(false);
  constexpr std::size_t kScratch = 1 << 20;
  std::vector<std::byte> shared;
  MemoryRequest request;
  const auto bytes = [&] {
    const ModelMemory memory(kernels::Backend::cpu, &train, evaluate, FlatLayout(train), request);
    EXPECT_EQ(memory.bytes(), total_bytes(memory.uses()));
    EXPECT_EQ(counted(memory, "all-reduce"), !shared.empty());
    EXPECT_EQ(reinterpret_cast<std::byte*>(memory.flat_gradients()) == shared.data(), !shared.empty());
    return memory.bytes();
  };
  const std::int64_t plain = bytes();
  request.shared_scratch = [](std::size_t) { return kScratch; };
  request.shared_memory = [](std::size_t) { return nullptr; };
  EXPECT_EQ(bytes(), plain);
  request.shared_memory = [&](std::size_t wanted) {
    shared.resize(wanted);
    return std::shared_ptr<std::byte>(std::shared_ptr<void>(), shared.data());
  };
  EXPECT_EQ(bytes(), plain + std::int64_t{kScratch});
  // Before anything is reserved.
  request.limit = plain + std::int64_t{kScratch} - 1;
  request.shared_memory = [](std::size_t) -> std::shared_ptr<std::byte> {
    ADD_FAILURE() << "asked for";
    return nullptr;
  };
  EXPECT_THROW(bytes(), std::runtime_error);
}

TEST(ModelMemory, RowsOfParametersLieInLines) {
  const FlatLayout flat(step(true));
  std::int64_t padding = flat.elements;
  for (const kernels::ParameterSegment& segment : flat.segments) {
    EXPECT_EQ(segment.offset * 2 % 256, 0) << segment.offset;
    padding -= segment.count;
  }
  EXPECT_GT(padding, 0) << "all parameters end where a line does: the test sees nothing";
}

}  // namespace
}  // namespace convoy::app
