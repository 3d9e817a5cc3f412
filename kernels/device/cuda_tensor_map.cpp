#include "kernels/device/cuda_tensor_map.h"

#include <cudaTypedefs.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "kernels/device/cuda_error.h"

namespace convoy::kernels {
namespace {

// Through the runtime, so that the program needs no libcuda to start.
template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  CONVOY_CUDA(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess)
    throw std::runtime_error(
        fmt::format("the CUDA driver has no {}: a driver for CUDA 12 or later is needed", name));
  return reinterpret_cast<Function>(found);
}

CUtensorMapDataType map_type(DType type) {
  if (type == DType::bf16) return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  if (type == DType::f32) return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  throw std::invalid_argument("tensor map: the element type is neither f32 nor bf16");
}

}  // namespace

CUtensorMap tiled_map(DType type, const void* data, const std::vector<std::int64_t>& extents,
                      const std::vector<std::int64_t>& pitches, const std::vector<std::uint32_t>& box) {
  static const auto encode = driver_function<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
  const std::vector<cuuint64_t> sizes(extents.begin(), extents.end());
  std::vector<cuuint64_t> strides;
  for (const auto pitch : pitches) strides.push_back(cuuint64_t(pitch) * bytes_of(type));
  const std::vector<cuuint32_t> steps(extents.size(), 1);
  CUtensorMap map;
  const CUresult result = encode(&map, map_type(type), cuuint32_t(extents.size()), const_cast<void*>(data),
                                 sizes.data(), strides.data(), box.data(), steps.data(),
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(
        fmt::format("cuTensorMapEncodeTiled failed with {} for extents {}, pitches {}, box {}", int(result),
                    extents, pitches, box));
  return map;
}

}  // namespace convoy::kernels
