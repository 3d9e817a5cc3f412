// Checks and timings of GEMM plans on the device, for `convoy bench gemm`, the tests and the choice of engines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"

namespace convoy::kernels::gemm {

struct Check {
  double relative_error = 0;  // Frobenius norm of the difference over that of the result, over the samples
  double worst = 0;           // largest element error over the bound for its precision; right if <= 1
  std::int64_t samples = 0;
  bool correct = false;
};

struct Timing {
  double microseconds = 0;  // median
  double least = 0, most = 0;
};

// Random operands of a problem on the current device, several sets where they would fit in the L2 cache.
class Bench {
 public:
  explicit Bench(const Problem& problem);
  ~Bench();
  Bench(Bench&&) noexcept;

  // Runs the plan on freshly drawn operands into a C filled with NaN (random where beta != 0) and compares with
  // products in double precision: all elements of a small C, else up to 20,000, the corners and edges among them.
  Check check(const Plan& plan, std::uint64_t seed);
  // Replays captured graphs of launches over all sets, about `budget` microseconds a sample, the plans taking turns
  // so that a change of the chip's clocks meets all alike; medians of `samples`.
  std::vector<Timing> time(const std::vector<Plan>& plans, double budget = 10000, int samples = 5);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct DeviceSummary {
  std::string name;
  int multiprocessors = 0;
  double copy_bytes_per_second = 0;  // device to device, read and written bytes both counted
};
DeviceSummary summarize_device();
std::string device_name();
bool device_present();
// For tests: from now on the current device counts as one of this compute capability, which has fewer kernels; 0: as
// itself. Not while a tuning file is in use, whose plans are under the device's name.
void pretend_major(int major);

}  // namespace convoy::kernels::gemm
