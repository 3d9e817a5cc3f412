// Checks and times convolutions on the device, for `convoy bench conv`, the tests and the choice of
// plans.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/conv2d/engines.h"
#include "kernels/gemm/bench/measure.h"

namespace convoy::kernels::conv {

// Holds random operands of a task on the current device. If one set of operands would fit into the
// L2 cache, there are several sets, so that timed launches read from memory.
class Bench {
 public:
  using Binder = std::function<Launch(const Buffers&)>;

  explicit Bench(const Task& task);
  ~Bench();
  Bench(Bench&&) noexcept;

  // Runs the plan on new random operands, with output and workspace filled with NaN. Compares
  // samples of the output, or all elements of a small output, with sums in double precision.
  gemm::Check check(const Plan& plan, std::uint64_t seed);
  gemm::Check check(const Binder& binder, std::size_t workspace_bytes, std::uint64_t seed);
  // Takes `samples` timings of each plan. A timing replays a captured graph of launches for about
  // `budget` microseconds. The launches use the sets of operands in turn. Returns, for each plan,
  // the median, the least and the most of its timings, per launch.
  std::vector<gemm::Timing> time(const std::vector<Plan>& plans, double budget, int samples = 5);
  std::vector<gemm::Timing> time(const std::vector<Binder>& binders, std::size_t workspace_bytes,
                                 double budget, int samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::kernels::conv
