// Code that reference.cpp and cpu.cpp files share: checks of requests, and a Kernel made of a host
// function. The CUDA makers also use the checks and followed_by().
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

// The addresses of operands, workspace and control to which a kernel was bound.
struct BoundOperands {
  explicit BoundOperands(const Operands& operands)
      : inputs(operands.inputs.begin(), operands.inputs.end()),
        outputs(operands.outputs.begin(), operands.outputs.end()),
        workspace(operands.workspace),
        members(operands.members),
        control_(operands.control) {}
  std::vector<void*> inputs, outputs;
  void* workspace;
  MemberLayout members;

  // Throws std::logic_error if the kernel was bound without a control.
  const StepControl* control() const {
    if (control_ == nullptr) throw_no_control();
    return control_;
  }
  template <typename T = float>
  const T* in(int position) const {
    return static_cast<const T*>(inputs[position]);
  }
  // Returns an input that the kernel updates in place, as a pointer for writing.
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

 private:
  [[noreturn]] static void throw_no_control();
  const StepControl* control_;
};

// Makes a kernel whose launch calls body(const BoundOperands&).
template <typename Body>
Kernel host_kernel(Body body, std::vector<std::pair<int, int>> in_place = {},
                   std::size_t workspace_bytes = 0) {
  Kernel kernel;
  kernel.workspace_bytes = workspace_bytes;
  kernel.in_place = std::move(in_place);
  kernel.bind = [body = std::move(body)](const Operands& operands) -> Launch {
    return [body, bound = std::make_shared<const BoundOperands>(operands)](Stream) { body(*bound); };
  };
  return kernel;
}

// Makes a kernel that runs `first`, then `second`, for example on the result of `first`. The
// function bind_second(second, operands) binds `second`.
template <typename BindSecond>
Kernel followed_by(const Kernel& first, const Kernel& second, BindSecond bind_second) {
  Kernel kernel;
  kernel.workspace_bytes = std::max(first.workspace_bytes, second.workspace_bytes);
  kernel.takes_members = first.takes_members && second.takes_members;
  kernel.bind = [=](const Operands& operands) -> Launch {
    return [one = first.bind(operands), other = bind_second(second, operands)](Stream stream) {
      one(stream);
      other(stream);
    };
  };
  return kernel;
}

// These checks throw std::invalid_argument with a message that starts with `operation`.
void require_counts(std::string_view operation, const KernelRequest& request, std::size_t inputs,
                    std::size_t outputs);
void require_shape(std::string_view operation, std::string_view operand, const TensorDesc& desc,
                   const Shape& expected);
void require_dtype(std::string_view operation, std::string_view operand, const TensorDesc& desc,
                   DType expected);

// If the operand's layout is open, sets it to `layout`. Throws if the operand has another layout.
void require_layout(std::string_view operation, TensorDesc& desc, Layout layout);
// Requires every operand of the request to be row_major, the reference backend's only layout.
void require_row_major(std::string_view operation, KernelRequest& request);
// If the operand's layout is open, sets it to that of `other`. Throws if the operand has another
// layout.
void match_layout(std::string_view operation, TensorDesc& desc, const TensorDesc& other);

// The extents of a tensor as images. A matrix [N, C] counts as images [N, C, 1, 1].
struct ImageExtents {
  std::int64_t n, c, h, w;
  std::int64_t pixels() const { return h * w; }
};
ImageExtents image_extents(const Shape& shape);

// Returns how many channels of a pixel lie next to each other in memory: 16 or 8 in a blocked
// layout, 1 in row_major. Throws for other layouts.
std::int64_t channel_lanes(std::string_view operation, const TensorDesc& desc);
// Sets the padding channels of a blocked f32 buffer to zero. Does nothing for other layouts.
void clear_channel_padding(const TensorDesc& desc, float* data);
// Returns the number of elements in the buffer, padding included.
inline std::int64_t buffer_elements(const TensorDesc& desc) {
  return static_cast<std::int64_t>(desc.bytes() / bytes_of(desc.dtype));
}

}  // namespace convoy::kernels
