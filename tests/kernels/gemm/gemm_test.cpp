// Tests GEMM problems without a GPU: their descriptions, and the problems that are refused.
#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace convoy::kernels::gemm {
namespace {

Problem small() {
  Problem problem;
  problem.m = 3;
  problem.n = 5;
  problem.k = 7;
  return problem;
}

TEST(GemmProblem, FillsThePitchesOfEachOrder) {
  Problem problem = small();
  EXPECT_EQ(problem.checked().lda, 7);
  EXPECT_EQ(problem.checked().ldb, 5);
  problem.transpose_a = problem.transpose_b = true;
  EXPECT_EQ(problem.checked().lda, 3);
  EXPECT_EQ(problem.checked().ldb, 7);
  EXPECT_EQ(problem.checked().ldc, 5);
}

TEST(GemmProblem, RefusesWhatNoKernelCanDo) {
  Problem problem = small();
  problem.k = 0;
  EXPECT_THROW(problem.checked(), std::invalid_argument);
  problem = small();
  problem.m = std::int64_t{1} << 31;
  EXPECT_THROW(problem.checked(), std::invalid_argument);
  problem = small();
  problem.ldb = 4;  // too small, because a row of B has five elements
  EXPECT_THROW(problem.checked(), std::invalid_argument);
  problem = small();
  problem.output = DType::i32;
  EXPECT_THROW(problem.checked(), std::invalid_argument);
}

TEST(GemmProblem, CountsOperationsAndBytes) {
  Problem problem = small();
  EXPECT_DOUBLE_EQ(problem.operations(), 2.0 * 3 * 5 * 7);
  EXPECT_DOUBLE_EQ(problem.bytes(), 4.0 * (3 * 7 + 7 * 5 + 3 * 5));
  problem.math = Math::bf16;
  problem.output = DType::bf16;
  problem.beta = 1;  // then C is read, too
  EXPECT_DOUBLE_EQ(problem.bytes(), 2.0 * (3 * 7 + 7 * 5 + 2 * 3 * 5));
}

}  // namespace
}  // namespace convoy::kernels::gemm
