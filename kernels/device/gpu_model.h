// Figures of particular GPU models; no other file has any. Rates are the highest measured, of large
// matrix products and of a copy within the device's memory.
#pragma once

#include <string_view>

namespace convoy::kernels {

struct GpuModel {
  std::string_view name;  // a part of the device's name
  int multiprocessors;
  double operations_fp32, operations_tf32, operations_bf16;  // of matrix products, a second
  double copied_bytes;                                       // bytes read plus bytes written, a second
  // For estimates of a plan's time. Operands are assumed to come from memory.
  double planned_cycles, planned_bytes;  // a microsecond
};

inline constexpr GpuModel kH200{"NVIDIA H200", 132, 52.1e12, 385e12, 798e12, 4.28e12, 1.6e3, 4.1e6};
inline constexpr GpuModel kGpuModels[] = {kH200};

// The model for choices that must not depend on the device at hand: the number of partial sums of a
// reduction, which decides its bits, and the estimates that choose a plan.
inline constexpr const GpuModel& kReferenceGpu = kH200;

// Null if no figures of the device are known. `device` is its full name, such as "NVIDIA H200".
constexpr const GpuModel* find_gpu_model(std::string_view device) {
  for (const GpuModel& model : kGpuModels)
    if (device.find(model.name) != std::string_view::npos) return &model;
  return nullptr;
}

}  // namespace convoy::kernels
