// cuDNN's convolutions, with which `convoy bench conv` compares ours; nothing else uses them. Its
// headers are needed to build, the library to run.
#pragma once

#include <string>
#include <vector>

#include "kernels/conv2d/bench/measure.h"

namespace convoy::kernels::conv {

// Returns a version such as "9.13.0", or an empty string without cuDNN.
std::string cudnn_version();

struct CudnnPlans {
  std::vector<Bench::Binder> binders;
  std::size_t workspace_bytes = 0;  // enough for every plan
};
// Returns the first `most` engines that cuDNN's heuristics name for the task and that run; none
// without cuDNN. Gradients of weights have the type of the images.
CudnnPlans cudnn_plans(const Task& task, int most);

}  // namespace convoy::kernels::conv
