#include "kernels/device/cuda_kernel.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels::cuda {

void require_activation_layout(std::string_view operation, TensorDesc& desc) {
  require_layout(operation, desc, desc.shape.rank() == 4 ? Layout::channels_last : Layout::row_major);
}

void require_activation_layouts(std::string_view operation, KernelRequest& request) {
  for (TensorDesc& desc : request.inputs) require_activation_layout(operation, desc);
  for (TensorDesc& desc : request.outputs) require_activation_layout(operation, desc);
}

DType common_dtype(std::string_view operation, const std::vector<const TensorDesc*>& descs) {
  const DType type = descs.front()->dtype;
  if (type != DType::f32 && type != DType::bf16)
    throw std::invalid_argument(
        fmt::format("{}: element type {}, expected f32 or bf16", operation, static_cast<int>(type)));
  for (const TensorDesc* desc : descs) require_dtype(operation, "an operand", *desc, type);
  return type;
}

void require_below_2g(std::string_view operation, std::int64_t count) {
  if (count >= std::int64_t{1} << 31)
    throw std::invalid_argument(fmt::format("{}: {} elements, expected fewer than 2^31", operation, count));
}

}  // namespace convoy::kernels::cuda
