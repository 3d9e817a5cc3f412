// cuDNN's convolutions, a yardstick for `convoy bench conv`. Its headers must be there when Convoy is built, its library
// when it runs; nothing else uses it.
#pragma once

#include <string>
#include <vector>

#include "kernels/conv2d/bench/measure.h"

namespace convoy::kernels::conv {

// "9.13.0"; empty where there is no cuDNN.
std::string cudnn_version();

struct CudnnPlans {
  std::vector<Bench::Binder> binders;
  std::size_t workspace_bytes = 0;  // of the hungriest
};
// The first `most` engines that cuDNN's heuristics name for the task and that it can run; gradients of weights in the
// type of the images. None where there is no cuDNN.
CudnnPlans cudnn_plans(const Task& task, int most);

}  // namespace convoy::kernels::conv
