// Error bounds and timings for the benchmarks of matrix products and convolutions. CUDA builds
// only.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/device/cuda_runtime.h"
#include "kernels/gemm/bench/measure.h"

namespace convoy::kernels::gemm {

// Benches run on the default stream and make no stream of their own, because every stream that has
// ever had work slows down all later graphs: eight streams cost 0.3 us per node of a graph on an
// H200.
inline constexpr cudaStream_t kBenchStream = nullptr;

// Returns how many sets of operands, at most 16, are needed to exceed the L2 cache several times,
// if a set has `bytes` bytes.
int operand_sets(double bytes);
// Allocates `workspace` anew if it has fewer than `bytes` bytes.
void reserve(DeviceBuffer& workspace, std::size_t bytes);

// The permitted errors. The error of an element may be at most of_products times the sum of the
// absolute values of its products, plus of_result times the element. The norm of all errors may be
// at most of_norm times the norm of the result.
struct Bounds {
  double of_products, of_result, of_norm;
};
// Returns the bounds for fp32 sums of k products each.
Bounds bounds_of(Math math, DType output, std::int64_t k);

// Compares the samples with their bounds. A Sample has `found`, `expected` and `magnitude`, which
// is the sum of the absolute values of its products.
template <class Sample>
Check judge(const std::vector<Sample>& samples, const Bounds& bounds) {
  Check check;
  check.samples = std::ssize(samples);
  double difference = 0, norm = 0;
  bool finite = true;
  for (const Sample& s : samples) {
    const double error = std::abs(s.found - s.expected);
    finite = finite && std::isfinite(s.found);
    const double bound = bounds.of_products * s.magnitude + bounds.of_result * std::abs(s.expected) + 1e-30;
    check.worst = std::max(check.worst, error / bound);
    difference += error * error;
    norm += s.expected * s.expected;
  }
  check.relative_error = std::sqrt(difference / std::max(norm, 1e-300));
  check.correct = finite && check.worst <= 1 && check.relative_error <= bounds.of_norm;
  return check;
}

// Takes `samples` timings of each contender, which has one launch per set of operands. A timing
// replays a captured graph of launches for about `budget` microseconds. Each contender is timed
// once before any contender is timed again, so that a change of the GPU's clock rate affects all of
// them. Returns, for each contender, the median, the least and the most of its timings, per launch.
std::vector<Timing> time_in_turns(const std::vector<std::vector<Launch>>& contenders, double budget,
                                  int samples);

}  // namespace convoy::kernels::gemm
