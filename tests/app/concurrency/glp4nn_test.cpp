// The analyzer of GLP4NN, on kernels small enough to count by hand.
#include "app/concurrency/glp4nn.h"

#include <gtest/gtest.h>

namespace convoy::app {
namespace {

// One block of each kernel on each of the ten multiprocessors.
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

// Shared memory has space for two of the first kernel, 1 of the second's warps for each of the
// first are left: 2 x 8 warps + 2 x 8 warps fill the 32.
TEST(Glp4nn, SharedMemoryIsSharedByTheKernelsOfALayer) {
  EXPECT_EQ(instances({kernel(256, 20 << 10, 16), kernel(256, 2 << 10, 16)}, Glp4nnLimits::all),
            (std::vector{2, 2}));
}

TEST(Glp4nn, TheOriginalForgetsRegistersAndBlocks) {
  // 256 threads of 64 registers: two blocks fill the registers.
  EXPECT_EQ(instances({kernel(256, 0, 64)}, Glp4nnLimits::original), std::vector{4});
  EXPECT_EQ(instances({kernel(256, 0, 64)}, Glp4nnLimits::all), std::vector{2});
  // 32 threads: 32 blocks by threads, but a multiprocessor takes eight.
  EXPECT_EQ(instances({kernel(32, 0, 16)}, Glp4nnLimits::original), std::vector{32});
  EXPECT_EQ(instances({kernel(32, 0, 16)}, Glp4nnLimits::all), std::vector{8});
}

// A grid of 35 blocks has four on a multiprocessor, or as many as fit.
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
