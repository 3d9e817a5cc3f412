// Checks and times GEMM plans on the device, for `convoy bench gemm`, the tests and the choice of
// engines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"

namespace convoy::kernels::gemm {

struct Check {
  double relative_error = 0;  // Frobenius norm of the samples' differences over that of the result
  double worst = 0;           // largest error of an element over its bound; at most 1 if right
  std::int64_t samples = 0;
  bool correct = false;
};

struct Timing {
  double microseconds = 0;  // the median
  double least = 0, most = 0;
};

// Holds random operands of a problem on the current device: several sets if one would fit into the
// L2 cache.
class Bench {
 public:
  explicit Bench(const Problem& problem);
  ~Bench();
  Bench(Bench&&) noexcept;

  // Runs the plan on new random operands into a C filled with NaN (random if beta != 0). Compares
  // all elements of a small C, else up to 20,000 with corners and edges, with products in double
  // precision.
  Check check(const Plan& plan, std::uint64_t seed);
  // Replays captured graphs of launches over all sets, about `budget` microseconds a sample. Plans
  // take turns, so that changes of clocks affect all alike. Returns medians of `samples`.
  std::vector<Timing> time(const std::vector<Plan>& plans, double budget = 10000, int samples = 5);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct DeviceSummary {
  std::string name;
  int multiprocessors = 0;
  double copy_bytes_per_second = 0;  // of a device-to-device copy, counting bytes read and written
};
DeviceSummary summarize_device();
std::string device_name();
bool device_present();
// Tests use this to treat the current device as one of this compute capability, which has fewer
// kernels; 0 restores it. Do not use it with a tuning file, whose keys have the device's name.
void pretend_major(int major);

}  // namespace convoy::kernels::gemm
