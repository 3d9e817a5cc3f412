// What particular GPUs can do: the only place with figures of one model. Rates are the highest that were measured, of
// large matrix products and of a copy within the device's memory (docs/results).
#pragma once

#include <string_view>

namespace convoy::kernels {

struct GpuModel {
  std::string_view name;  // a part of the device's name
  int multiprocessors;
  double operations_fp32, operations_tf32, operations_bf16;  // of matrix products, a second
  double copied_bytes;                                       // read and written bytes both counted, a second
  // For estimates of a plan's time, which are made for operands that come from memory.
  double planned_cycles, planned_bytes;  // a microsecond
};

inline constexpr GpuModel kH200{"NVIDIA H200", 132, 52.1e12, 385e12, 798e12, 4.28e12, 1.6e3, 4.1e6};
inline constexpr GpuModel kGpuModels[] = {kH200};

// Choices that must not depend on the device at hand are made for this model: into how many sums a reduction is
// divided, which decides its bits, and how long a plan is expected to take.
inline constexpr const GpuModel& kReferenceGpu = kH200;

// Null if no figures of the device are known. `device` is its full name, such as "NVIDIA H200".
constexpr const GpuModel* find_gpu_model(std::string_view device) {
  for (const GpuModel& model : kGpuModels)
    if (device.find(model.name) != std::string_view::npos) return &model;
  return nullptr;
}

}  // namespace convoy::kernels
