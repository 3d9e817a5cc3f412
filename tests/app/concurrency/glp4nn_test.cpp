// Tests the analyzer of GLP4NN (app/concurrency/glp4nn.h), which computes how many instances of
// each kernel fit on a device at the same time. The expected numbers are counted by hand.
#include "app/concurrency/glp4nn.h"

#include <gtest/gtest.h>

namespace convoy::app {
namespace {

// Returns a kernel with ten blocks, one for each multiprocessor of small_device().
LayerKernel kernel(int threads, std::int64_t shared, int registers, double ms = 1) {
  return {{.blocks = 10,
           .threads = threads,
           .registers = registers,
           .static_shared = shared / 2,
           .dynamic_shared = shared - shared / 2,
           .resident = 8},
          ms};
}

DeviceLimits small_device() {
  DeviceLimits device;
  device.multiprocessors = 10, device.threads = 1024, device.blocks = 8;
  device.registers = 32768, device.shared_bytes = 48 << 10;
  return device;
}

std::vector<int> instances(const std::vector<LayerKernel>& kernels, Glp4nnLimits limits,
                           double launch_ms = 0.01) {
  return glp4nn_instances(kernels, small_device(), launch_ms, limits);
}

TEST(Glp4nn, ThreadsLimitAKernelAlone) {
  EXPECT_EQ(instances({kernel(256, 0, 16)}, Glp4nnLimits::original), std::vector{4});
  EXPECT_EQ(glp4nn_streams(std::vector{kernel(256, 0, 16)}, small_device(), 0.01, Glp4nnLimits::all), 4);
}

TEST(Glp4nn, NoMoreThanCanBeLaunchedWhileItRuns) {
  EXPECT_EQ(instances({kernel(128, 0, 16, 0.025)}, Glp4nnLimits::all), std::vector{3});
}

// Shared memory (48 KiB) has space for two instances of the first kernel, which take 16 of the 32
// warps. The other 16 warps are enough for two instances of the second kernel.
TEST(Glp4nn, SharedMemoryIsSharedByTheKernelsOfALayer) {
  EXPECT_EQ(instances({kernel(256, 20 << 10, 16), kernel(256, 2 << 10, 16)}, Glp4nnLimits::all),
            (std::vector{2, 2}));
}

TEST(Glp4nn, TheOriginalForgetsRegistersAndBlocks) {
  // Two blocks of 256 threads with 64 registers each fill the 32768 registers.
  EXPECT_EQ(instances({kernel(256, 0, 64)}, Glp4nnLimits::original), std::vector{4});
  EXPECT_EQ(instances({kernel(256, 0, 64)}, Glp4nnLimits::all), std::vector{2});
  // The 1024 threads would allow 32 blocks of 32 threads, but a multiprocessor takes only eight
  // blocks.
  EXPECT_EQ(instances({kernel(32, 0, 16)}, Glp4nnLimits::original), std::vector{32});
  EXPECT_EQ(instances({kernel(32, 0, 16)}, Glp4nnLimits::all), std::vector{8});
}

// A grid of 35 blocks puts up to four blocks on each of ten multiprocessors. Four blocks have 512
// of the 1024 threads, so two instances fit. If a multiprocessor can hold only two blocks of the
// grid, an instance has 256 threads there, so four instances fit.
TEST(Glp4nn, AnInstanceHasItsGridsShareOfBlocks) {
  LayerKernel large = kernel(128, 0, 16);
  large.use.blocks = 35;
  EXPECT_EQ(instances({large}, Glp4nnLimits::all), std::vector{2});
  large.use.resident = 2;
  EXPECT_EQ(instances({large}, Glp4nnLimits::all), std::vector{4});
}

TEST(Glp4nn, AKernelThatFitsNowhereHasOneStream) {
  const std::vector<LayerKernel> kernels{kernel(2048, 0, 16)};
  EXPECT_EQ(glp4nn_streams(kernels, small_device(), 0.01, Glp4nnLimits::all), 1);
  EXPECT_EQ(glp4nn_streams({}, small_device(), 0.01, Glp4nnLimits::all), 1);
}

}  // namespace
}  // namespace convoy::app
