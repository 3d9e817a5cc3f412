#include "kernels/device/host_kernel.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels {
namespace {

const char* name_of(Layout layout) {
  constexpr const char* kNames[] = {"any", "row_major", "channels_last", "blocked16", "blocked8", "opaque"};
  return kNames[static_cast<int>(layout)];
}

}  // namespace

void require_counts(std::string_view operation, const KernelRequest& request, std::size_t inputs,
                    std::size_t outputs) {
  if (request.inputs.size() != inputs || request.outputs.size() != outputs)
    throw std::invalid_argument(fmt::format("{}: {} inputs and {} outputs, expected {} and {}", operation,
                                            request.inputs.size(), request.outputs.size(), inputs, outputs));
}

void BoundOperands::throw_no_control() {
  throw std::logic_error("a kernel that reads the StepControl was bound without one");
}

void require_shape(std::string_view operation, std::string_view operand, const TensorDesc& desc,
                   const Shape& expected) {
  if (desc.shape != expected)
    throw std::invalid_argument(fmt::format("{}: {} is {}, expected {}", operation, operand,
                                            desc.shape.to_string(), expected.to_string()));
}

void require_dtype(std::string_view operation, std::string_view operand, const TensorDesc& desc,
                   DType expected) {
  if (desc.dtype != expected)
    throw std::invalid_argument(fmt::format("{}: {} has element type {}, expected {}", operation, operand,
                                            static_cast<int>(desc.dtype), static_cast<int>(expected)));
}

void require_layout(std::string_view operation, TensorDesc& desc, Layout layout) {
  if (desc.layout == Layout::any) desc.layout = layout;
  if (desc.layout != layout)
    throw std::invalid_argument(
        fmt::format("{}: an operand is {}, expected {}", operation, name_of(desc.layout), name_of(layout)));
}

void require_row_major(std::string_view operation, KernelRequest& request) {
  for (TensorDesc& desc : request.inputs) require_layout(operation, desc, Layout::row_major);
  for (TensorDesc& desc : request.outputs) require_layout(operation, desc, Layout::row_major);
}

void match_layout(std::string_view operation, TensorDesc& desc, const TensorDesc& other) {
  if (desc.layout == Layout::any) desc.opaque = other.opaque;
  require_layout(operation, desc, other.layout);
}

ImageExtents image_extents(const Shape& shape) {
  if (shape.rank() == 2) return {shape[0], shape[1], 1, 1};
  if (shape.rank() == 4) return {shape[0], shape[1], shape[2], shape[3]};
  throw std::invalid_argument(fmt::format("a tensor of extents {}, expected two or four", shape.to_string()));
}

std::int64_t channel_lanes(std::string_view operation, const TensorDesc& desc) {
  if (desc.layout == Layout::row_major || desc.shape.rank() != 4) return 1;
  if (desc.layout == Layout::blocked16) return 16;
  if (desc.layout == Layout::blocked8) return 8;
  throw std::invalid_argument(fmt::format("{}: an operand is {}, expected row_major, blocked16 or blocked8",
                                          operation, name_of(desc.layout)));
}

void clear_channel_padding(const TensorDesc& desc, float* data) {
  if (desc.layout != Layout::blocked16 && desc.layout != Layout::blocked8) return;
  const std::int64_t lanes = desc.layout == Layout::blocked16 ? 16 : 8;
  const ImageExtents e = image_extents(desc.shape);
  const std::int64_t used = e.c % lanes, blocks = (e.c + lanes - 1) / lanes;
  if (used == 0) return;
  for (std::int64_t n = 0; n < e.n; ++n)
    for (std::int64_t pixel = 0; pixel < e.pixels(); ++pixel) {
      float* const last = data + (((n + 1) * blocks - 1) * e.pixels() + pixel) * lanes;
      std::fill(last + used, last + lanes, 0.0f);
    }
}

}  // namespace convoy::kernels
