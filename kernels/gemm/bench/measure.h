// Checks and times GEMM plans on the device, for `convoy bench gemm`, the tests and the choice of
// plans.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"

namespace convoy::kernels::gemm {

struct Check {
  // The norm of the errors of all samples, divided by the norm of the result.
  double relative_error = 0;
  double worst = 0;  // largest error of an element, divided by its bound: at most 1 if C is right
  std::int64_t samples = 0;
  bool correct = false;
};

struct Timing {
  double microseconds = 0;  // the median of the samples
  double least = 0, most = 0;
};

// Holds random operands of a problem on the current device. It has several sets of operands if one
// set would fit into the L2 cache, so that timed launches read from memory.
class Bench {
 public:
  explicit Bench(const Problem& problem);
  ~Bench();
  Bench(Bench&&) noexcept;

  // Runs the plan on new random operands. C is filled with NaN before (with random values if beta
  // != 0). Compares up to 20,000 elements of C with sums in double precision.
  Check check(const Plan& plan, std::uint64_t seed);
  // Takes `samples` timings of each plan. A timing replays a captured graph of launches for about
  // `budget` microseconds. The launches use the sets of operands in turn. Each plan is timed once
  // before any plan is timed again, so that a change of the GPU's clock rate affects all of them.
  // Returns, for each plan, the median, the least and the most of its timings, per launch.
  std::vector<Timing> time(const std::vector<Plan>& plans, double budget = 10000, int samples = 5);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct DeviceSummary {
  std::string name;
  int multiprocessors = 0;
  // The rate of a copy within the device's memory. Bytes read and bytes written both count.
  double copy_bytes_per_second = 0;
};
DeviceSummary summarize_device();
std::string device_name();
bool device_present();
// Makes the library treat the current device as one of this major compute capability, for which
// there may be fewer kernels. 0 restores the device's own. Only for tests without a tuning file.
void pretend_major(int major);

}  // namespace convoy::kernels::gemm
