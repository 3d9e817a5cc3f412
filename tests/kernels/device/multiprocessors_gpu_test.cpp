// Tests that the two parts of a divided GPU share no multiprocessor, also for kernels of graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernels/device/cuda_runtime.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/multiprocessors.h"
#include "tests/kernels/block_places.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

constexpr std::size_t kMost = 1024;  // more multiprocessors than any GPU has
constexpr int kBlocks = 20'000;

class CudaMultiprocessors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_present()) GTEST_SKIP() << "no GPU here: its multiprocessors were not divided";
    CONVOY_CUDA(cudaDeviceGetAttribute(&count_, cudaDevAttrMultiProcessorCount, 0));
  }
  // Runs enqueue(counts) and returns the multiprocessors that ran its blocks.
  template <typename Enqueue>
  static std::set<std::size_t> places(const Enqueue& enqueue) {
    const std::shared_ptr<std::byte> memory = allocate(Backend::cuda, kMost * sizeof(unsigned));
    std::vector<unsigned> counts(kMost, 0);
    kernels::copy_in(Backend::cuda, memory.get(), counts.data(), kMost * sizeof(unsigned));
    enqueue(reinterpret_cast<unsigned*>(memory.get()));
    kernels::synchronize(Backend::cuda);
    kernels::copy_out(Backend::cuda, counts.data(), memory.get(), kMost * sizeof(unsigned));
    std::set<std::size_t> used;
    for (std::size_t i = 0; i < kMost; ++i)
      if (counts[i] > 0) used.insert(i);
    return used;
  }
  static bool disjoint(const std::set<std::size_t>& a, const std::set<std::size_t>& b) {
    return std::ranges::none_of(a, [&](std::size_t one) { return b.contains(one); });
  }

  int count_ = 0;
};

TEST_F(CudaMultiprocessors, PartsRunOnDifferentOnes) {
  for (const int size : {8, 64}) {
    const DividedMultiprocessors parts = divide_multiprocessors(size);
    EXPECT_EQ(parts.first.count(), size);
    EXPECT_EQ(parts.first.count() + parts.rest.count(), count_);
    const auto of = [&](const MultiprocessorPart& part) {
      return places([&](unsigned* counts) {
        const CudaStream stream(CudaStream::Priority::normal, &part);
        count_blocks(counts, kBlocks, stream.get());
        stream.synchronize();
      });
    };
    const std::set<std::size_t> first = of(parts.first), rest = of(parts.rest);
    EXPECT_EQ(std::ssize(first), size);
    EXPECT_EQ(std::ssize(rest), count_ - size);
    EXPECT_TRUE(disjoint(first, rest));
  }
}

TEST_F(CudaMultiprocessors, CapturedKernelsStayInTheirPart) {
  const DividedMultiprocessors parts = divide_multiprocessors(8);
  const CudaStream anywhere, in_rest(CudaStream::Priority::high, &parts.rest);
  // A second stream that forks from the first and joins it, as the lanes of a step do.
  const CudaStream second(CudaStream::Priority::high, &parts.first);
  const CudaEvent fork, join, done;
  for (const CudaStream* stream : {&anywhere, &in_rest}) {
    const std::set<std::size_t> used = places([&](unsigned* counts) {
      const CapturedGraph graph = CapturedGraph::capture(
          [&](Stream first) {
            fork.record(first.get());
            fork.make_wait(second.get());
            count_blocks(counts, kBlocks, first.get());
            count_blocks(counts, kBlocks, second.get());
            join.record(second.get());
            join.make_wait(first.get());
          },
          CudaStream::Priority::normal, &parts.first);
      graph.launch(stream->get());
      // With an event, a stream can wait for a stream in another part of the GPU.
      done.record(stream->get());
      done.make_wait(anywhere.get());
      anywhere.synchronize();
    });
    EXPECT_EQ(used.size(), 8u) << (stream == &anywhere ? "launched anywhere" : "launched in the rest");
  }
}

TEST_F(CudaMultiprocessors, SizesThatCannotBeSeparatedAreNamed) {
  for (const int size : {-8, 0, 12, count_, 1000}) {
    try {
      divide_multiprocessors(size);
      ADD_FAILURE() << size;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("found " + std::to_string(size)), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
