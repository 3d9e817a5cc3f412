#include "kernels/device/cuda_tensor_map.h"

#include <cudaTypedefs.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "kernels/device/cuda_driver.h"
#include "kernels/device/cuda_resident.h"

namespace convoy::kernels {
namespace {

CUtensorMapDataType map_type(DType type) {
  if (type == DType::bf16) return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  if (type == DType::f32) return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  throw std::invalid_argument("tensor map: the element type is neither f32 nor bf16");
}

CUtensorMapSwizzle map_swizzle(Swizzle swizzle) {
  return swizzle == Swizzle::bytes_64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B;
}

}  // namespace

CUtensorMap tiled_map(DType type, const void* data, const std::vector<std::int64_t>& extents,
                      const std::vector<std::int64_t>& pitches, const std::vector<std::uint32_t>& box,
                      Swizzle swizzle) {
  static const auto encode = driver_function<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
  const std::vector<cuuint64_t> sizes(extents.begin(), extents.end());
  std::vector<cuuint64_t> strides;
  for (const auto pitch : pitches) strides.push_back(cuuint64_t(pitch) * bytes_of(type));
  const std::vector<cuuint32_t> steps(extents.size(), 1);
  CUtensorMap map;
  const CUresult result =
      encode(&map, map_type(type), cuuint32_t(extents.size()), const_cast<void*>(data), sizes.data(),
             strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, map_swizzle(swizzle),
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(
        fmt::format("cuTensorMapEncodeTiled failed with {} for extents {}, pitches {}, box {}", int(result),
                    extents, pitches, box));
  return map;
}

namespace {

// Returns, along one axis, how many pixels the last position lies after the tensor's last pixel.
// The number is negative if the position lies before that pixel. TMA's descriptor has a field for
// it.
int upper_corner(const Im2colMap& map, int axis) {
  const int extent = int(axis == 0 ? map.h : map.w), count = axis == 0 ? map.down : map.across;
  return map.first[axis] + (count - 1) * map.step[axis] - (extent - 1);
}

}  // namespace

bool Im2colMap::encodable() const {
  for (int axis = 0; axis < 2; ++axis) {
    const int upper = upper_corner(*this, axis);
    if (first[axis] < -128 || first[axis] > 127 || upper < -128 || upper > 127 || step[axis] > 8)
      return false;
  }
  return true;
}

CUtensorMap Im2colMap::encode() const {
  static const auto encode_im2col =
      driver_function<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col");
  const std::size_t bytes = bytes_of(type);
  const cuuint64_t sizes[] = {cuuint64_t(c), cuuint64_t(w), cuuint64_t(h), cuuint64_t(n)};
  const cuuint64_t strides[] = {pitch_w * bytes, pitch_h * bytes, pitch_n * bytes};
  const int lower[] = {first[1], first[0]}, upper[] = {upper_corner(*this, 1), upper_corner(*this, 0)};
  const cuuint32_t steps[] = {1, cuuint32_t(step[1]), cuuint32_t(step[0]), 1};
  CUtensorMap map;
  const CUresult result = encode_im2col(
      &map, map_type(type), 4, const_cast<void*>(data), sizes, strides, lower, upper, cuuint32_t(channels),
      cuuint32_t(pixels), steps, CU_TENSOR_MAP_INTERLEAVE_NONE, map_swizzle(swizzle),
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(
        fmt::format("cuTensorMapEncodeIm2col failed with {} for {}x{}x{}x{}, pitches {}, {}, {}, corners {} "
                    "and {}, steps {}",
                    int(result), n, h, w, c, pitch_n, pitch_h, pitch_w, fmt::join(lower, ","),
                    fmt::join(upper, ","), fmt::join(steps, ",")));
  return map;
}

MapMaker::MapMaker(MemberLayout members)
    : members_(members), tables_(std::make_shared<std::vector<std::shared_ptr<const CUtensorMap>>>()) {}

MemberMap MapMaker::make(const void* data, const std::function<CUtensorMap(const void*)>& encode) const {
  MemberMap maps{encode(data), nullptr};
  if (members_.count == 1) return maps;
  std::vector<CUtensorMap> others;
  for (int member = 1; member < members_.count; ++member)
    others.push_back(encode(static_cast<const std::uint8_t*>(data) + member * members_.stride));
  tables_->push_back(cuda::upload(others));
  maps.others = tables_->back().get();
  return maps;
}

MemberMap MapMaker::tiled(DType type, const void* data, const std::vector<std::int64_t>& extents,
                          const std::vector<std::int64_t>& pitches, const std::vector<std::uint32_t>& box,
                          Swizzle swizzle) const {
  return make(data, [&](const void* at) { return tiled_map(type, at, extents, pitches, box, swizzle); });
}

MemberMap MapMaker::im2col(const Im2colMap& map) const {
  return make(map.data, [&](const void* at) {
    Im2colMap moved = map;
    moved.data = at;
    return moved.encode();
  });
}

}  // namespace convoy::kernels
