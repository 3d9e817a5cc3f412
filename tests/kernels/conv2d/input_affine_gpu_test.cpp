// Tests every kernel of a convolution that normalises its input as it reads it (input_affine), next
// to sums in double precision. In training only the kernel that is expected to be the fastest runs.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/conv2d/bench/measure.h"
#include "kernels/conv2d/engines.h"
#include "kernels/gemm/bench/measure.h"

namespace convoy::kernels::conv {
namespace {

TEST(CudaInputAffine, EveryKernelAgreesWithTheDefinition) {
  if (!gemm::device_present() || !conv2d_fuses_input_norm(Backend::cuda))
    GTEST_SKIP() << "no Hopper GPU: kernels with input_affine were not tested";
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  int plans = 0, splits = 0;
  for (const int c : {8, 72, 576, 1024})
    for (const int k : {8, 200, 520})
      for (const Direction direction : {Direction::forward, Direction::backward_weights})
        for (const bool statistics : {false, true}) {
          if (statistics && direction != Direction::forward) continue;
          Task task;
          task.direction = direction;
          task.math = gemm::Math::bf16;
          task.geometry = {3, c, 9, 11, k, 9, 11, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1};
          task.statistics = statistics;
          task.input_affine = InputAffine{0, statistics ? 0.5F : kInfinity};
          Bench bench(task);
          for (const Plan& plan : candidates(task)) {
            const gemm::Check check = bench.check(plan, 5);
            EXPECT_TRUE(check.correct)
                << task.to_string() << ", " << plan.to_string() << ": error " << check.relative_error;
            ++plans;
            splits += plan.product.splits > 1 && direction == Direction::forward;
          }
        }
  EXPECT_GT(plans, 100);
  EXPECT_GT(splits, 0) << "no product of forward was split";
}

}  // namespace
}  // namespace convoy::kernels::conv
