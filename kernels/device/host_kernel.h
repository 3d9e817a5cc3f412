// What reference.cpp and cpu.cpp files share: checks of a request, and a host function as a Kernel. CUDA's makers take the
// checks, and a kernel behind another one, from here too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

// The addresses that a kernel was bound to.
struct BoundOperands {
  std::vector<void*> inputs, outputs;
  void* workspace = nullptr;

  template <typename T = float>
  const T* in(int position) const {
    return static_cast<const T*>(inputs[position]);
  }
  // An input that the kernel updates.
  template <typename T = float>
  T* inout(int position) const {
    return static_cast<T*>(inputs[position]);
  }
  template <typename T = float>
  T* out(int position) const {
    return static_cast<T*>(outputs[position]);
  }
  template <typename T>
  T* scratch() const {
    return static_cast<T*>(workspace);
  }
};

// A kernel whose launch is body(const BoundOperands&).
template <typename Body>
Kernel host_kernel(Body body, std::vector<std::pair<int, int>> in_place = {},
                   std::size_t workspace_bytes = 0) {
  Kernel kernel;
  kernel.workspace_bytes = workspace_bytes;
  kernel.in_place = std::move(in_place);
  kernel.bind = [body = std::move(body)](const Operands& operands) -> Launch {
    BoundOperands bound{{operands.inputs.begin(), operands.inputs.end()},
                        {operands.outputs.begin(), operands.outputs.end()},
                        operands.workspace};
    return [body, bound = std::make_shared<const BoundOperands>(std::move(bound))](Stream) { body(*bound); };
  };
  return kernel;
}

// A kernel, and another one behind it, over its result say; bind_second(second, operands) binds that.
template <typename BindSecond>
Kernel followed_by(const Kernel& first, const Kernel& second, BindSecond bind_second) {
  Kernel kernel;
  kernel.workspace_bytes = std::max(first.workspace_bytes, second.workspace_bytes);
  kernel.bind = [=](const Operands& operands) -> Launch {
    return [one = first.bind(operands), other = bind_second(second, operands)](Stream stream) {
      one(stream);
      other(stream);
    };
  };
  return kernel;
}

// The checks throw std::invalid_argument that starts with `operation`.
void require_counts(std::string_view operation, const KernelRequest& request, std::size_t inputs,
                    std::size_t outputs);
void require_control(std::string_view operation, const KernelRequest& request);
void require_shape(std::string_view operation, std::string_view operand, const TensorDesc& desc,
                   const Shape& expected);
void require_dtype(std::string_view operation, std::string_view operand, const TensorDesc& desc,
                   DType expected);

// Gives an open operand this layout; one that has another is refused.
void settle(std::string_view operation, TensorDesc& desc, Layout layout);
// Every operand of the request row_major: the reference backend's only layout.
void settle_row_major(std::string_view operation, KernelRequest& request);
// Gives an open operand the layout of `other`; one that has another is refused.
void settle_like(std::string_view operation, TensorDesc& desc, const TensorDesc& other);

// Extents of a tensor seen as images: [N, C] is [N, C, 1, 1].
struct ImageExtents {
  std::int64_t n, c, h, w;
  std::int64_t pixels() const { return h * w; }
};
ImageExtents image_extents(const Shape& shape);

// Neighbouring channels of one pixel that lie side by side: 16 or 8 in a blocked layout, 1 in row_major;
// other layouts are refused.
std::int64_t channel_lanes(std::string_view operation, const TensorDesc& desc);
// Elements of the buffer, padding included.
inline std::int64_t buffer_elements(const TensorDesc& desc) {
  return static_cast<std::int64_t>(desc.bytes() / bytes_of(desc.dtype));
}

}  // namespace convoy::kernels
