// Figures of particular GPU models; all other files are independent of them. The rates are the
// highest that were measured, for large matrix products and for a copy within the device's memory.
#pragma once

#include <string_view>

namespace convoy::kernels {

struct GpuModel {
  std::string_view name;  // a part of the device's name
  int multiprocessors;
  double operations_fp32, operations_tf32, operations_bf16;  // operations of matrix products per second
  // The bytes that a copy reads plus the bytes that it writes, per second.
  double copied_bytes;
  // The rates that estimates of a plan's time assume, for operands in device memory.
  double planned_cycles, planned_bytes;  // cycles and bytes per microsecond
  // How many clusters of 1, 2, ... 8 blocks run at the same time, if two blocks fit on a
  // multiprocessor.
  int resident_clusters[8];
};

inline constexpr GpuModel kH200{
    "NVIDIA H200", 132, 52.1e12, 385e12, 798e12, 4.28e12, 1.6e3, 4.1e6, {264, 132, 79, 62, 47, 39, 32, 30}};
inline constexpr GpuModel kGpuModels[] = {kH200};

// The model for choices that decide the bits of results: numbers of partial sums, and the estimates
// by which plans are chosen. These choices must not depend on the device at hand.
inline constexpr const GpuModel& kReferenceGpu = kH200;

// Returns null if the device's figures are not known. `device` is the device's full name, such as
// "NVIDIA H200".
constexpr const GpuModel* find_gpu_model(std::string_view device) {
  for (const GpuModel& model : kGpuModels)
    if (device.find(model.name) != std::string_view::npos) return &model;
  return nullptr;
}

}  // namespace convoy::kernels
