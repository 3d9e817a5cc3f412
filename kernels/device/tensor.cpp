#include "kernels/device/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "kernels/device/parallel.h"

namespace convoy::kernels {
namespace {

std::int64_t padded_to(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

float load(DType type, const void* base, std::int64_t index) {
  switch (type) {
    case DType::f32:
      return static_cast<const float*>(base)[index];
    case DType::f64:
      return static_cast<float>(static_cast<const double*>(base)[index]);
    case DType::bf16:
      return std::bit_cast<float>(std::uint32_t{static_cast<const std::uint16_t*>(base)[index]} << 16);
    case DType::i32:
      return static_cast<float>(static_cast<const std::int32_t*>(base)[index]);
    case DType::u8:
      return static_cast<const std::uint8_t*>(base)[index];
  }
  throw std::logic_error("unknown element type");
}

std::uint16_t round_to_bf16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // keeps a NaN a NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

void store(DType type, void* base, std::int64_t index, float value) {
  switch (type) {
    case DType::f32:
      static_cast<float*>(base)[index] = value;
      return;
    case DType::f64:
      static_cast<double*>(base)[index] = value;
      return;
    case DType::bf16:
      static_cast<std::uint16_t*>(base)[index] = round_to_bf16(value);
      return;
    case DType::i32:
      static_cast<std::int32_t*>(base)[index] = static_cast<std::int32_t>(value);
      return;
    case DType::u8:
      static_cast<std::uint8_t*>(base)[index] = static_cast<std::uint8_t>(value);
      return;
  }
}

// Calls visit(row-major index, index in the buffer) for every element, except padding, from several
// threads.
template <typename Visit>
void for_each_element(const TensorDesc& desc, Visit visit) {
  if (desc.layout == Layout::any) throw std::logic_error("tensor without a layout");
  if (desc.shape.rank() != 4 || desc.layout == Layout::row_major) {
    parallel_pieces(desc.shape.elements(), kPiece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) visit(i, i);
    });
    return;
  }
  const auto [n, c, h, w] = std::array{desc.shape[0], desc.shape[1], desc.shape[2], desc.shape[3]};
  const std::int64_t pixels = h * w, channels = c;
  const std::int64_t block = desc.layout == Layout::channels_last ? c
                             : desc.layout == Layout::blocked8    ? 8
                                                                  : 16;
  const std::int64_t blocks = (c + block - 1) / block;
  parallel_for(n, [&](std::int64_t in) {
    std::int64_t index = in * channels * pixels;
    for (std::int64_t ic = 0; ic < channels; ++ic)
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
        visit(index++, ((in * blocks + ic / block) * pixels + pixel) * block + ic % block);
  });
}

}  // namespace

std::size_t bytes_of(DType type) {
  switch (type) {
    case DType::f32:
      return 4;
    case DType::f64:
      return 8;
    case DType::bf16:
      return 2;
    case DType::i32:
      return 4;
    case DType::u8:
      return 1;
  }
  throw std::logic_error("unknown element type");
}

Shape::Shape(std::initializer_list<std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  if (rank_ > kMaxRank) throw std::logic_error("a shape has at most four extents");
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= extents_[axis];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("{}", fmt::join(extents_.begin(), extents_.begin() + rank_, "x"));
}

std::size_t TensorDesc::bytes() const {
  if (layout == Layout::opaque) return opaque->bytes();
  Shape padded = shape;
  if (layout == Layout::blocked16) padded[1] = padded_to(padded[1], 16);
  if (layout == Layout::blocked8) padded[1] = padded_to(padded[1], 8);
  return static_cast<std::size_t>(padded.elements()) * bytes_of(dtype);
}

bool is_row_major_f32(const TensorDesc& desc) {
  if (desc.dtype != DType::f32 || desc.layout == Layout::any || desc.layout == Layout::opaque) return false;
  if (desc.layout == Layout::row_major) return true;
  if (desc.shape.rank() != 4) return desc.bytes() == static_cast<std::size_t>(desc.shape.elements()) * 4;
  return desc.layout == Layout::channels_last && (desc.shape[1] == 1 || desc.shape[2] * desc.shape[3] == 1);
}

void to_row_major(const TensorDesc& desc, const void* from, float* to) {
  if (desc.layout == Layout::opaque) return desc.opaque->to_row_major(from, to);
  if (is_row_major_f32(desc)) {
    if (desc.bytes() > 0) std::memcpy(to, from, desc.bytes());
    return;
  }
  for_each_element(desc, [&](std::int64_t row_major, std::int64_t index) {
    to[row_major] = load(desc.dtype, from, index);
  });
}

void from_row_major(const TensorDesc& desc, const float* from, void* to) {
  if (desc.layout == Layout::opaque) return desc.opaque->from_row_major(from, to);
  if (is_row_major_f32(desc)) {
    if (desc.bytes() > 0) std::memcpy(to, from, desc.bytes());
    return;
  }
  std::memset(to, 0, desc.bytes());
  for_each_element(desc, [&](std::int64_t row_major, std::int64_t index) {
    store(desc.dtype, to, index, from[row_major]);
  });
}

}  // namespace convoy::kernels
