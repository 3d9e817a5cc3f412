// cuDNN's convolutions. Only `convoy bench conv` uses them, for comparison with ours. Building
// needs cuDNN's headers, and running needs its library.
#pragma once

#include <string>
#include <vector>

#include "kernels/conv2d/bench/measure.h"

namespace convoy::kernels::conv {

// Returns a version such as "9.13.0", or an empty string if cuDNN is missing.
std::string cudnn_version();

struct CudnnPlans {
  std::vector<Bench::Binder> binders;
  std::size_t workspace_bytes = 0;  // the size of a workspace that is enough for every plan
};
// Returns plans of up to `most` engines that can run the task, in the order of cuDNN's heuristics.
// Returns none if cuDNN is missing.
CudnnPlans cudnn_plans(const Task& task, int most);

}  // namespace convoy::kernels::conv
