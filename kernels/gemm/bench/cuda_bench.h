// What the benches of products and of convolutions share: how right sampled elements must be, and times taken in turns.
// CUDA builds only.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/device/cuda_runtime.h"
#include "kernels/gemm/bench/measure.h"

namespace convoy::kernels::gemm {

// Where benches run. On streams of their own they would leave a process slower than they found it: every stream that has had
// work, even one destroyed since, costs each node of a later graph time (eight of them 0.3 us a node on an H200).
inline constexpr cudaStream_t kBenchStream = nullptr;

// Sets of operands that together are several times the largest L2 cache, of `bytes` each.
int operand_sets(double bytes);
// Makes `workspace` at least that large.
void reserve(DeviceBuffer& workspace, std::size_t bytes);

// An element may be off by of_products times the sum of its products' absolute values and of_result times itself; the
// norm of all differences by of_norm times that of the results, far below what one forgotten stage of k would leave.
struct Bounds {
  double of_products, of_result, of_norm;
};
// Sums of k products in fp32, whose rounding grows like a random walk; tf32 drops the last 13 bits of either factor.
Bounds bounds_of(Math math, DType output, std::int64_t k);

// Sample: expected, magnitude (the sum of the absolute values of its products) and found.
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

// Of each contender its launches, one a set of operands. Captured graphs of about `budget` microseconds take turns, so that
// a change of the chip's clocks meets all alike; of a launch above 0.1 s one run will do. Medians of `samples`.
std::vector<Timing> time_in_turns(const std::vector<std::vector<Launch>>& contenders, double budget,
                                  int samples);

}  // namespace convoy::kernels::gemm
