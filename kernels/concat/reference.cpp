// Concatenates in plain loops.
#include <algorithm>

#include "kernels/concat/concat.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {
namespace {

// Returns how many elements one sample of each part has. Throws unless the parts make up the whole
// tensor.
std::vector<std::int64_t> sample_elements(const char* operation, const std::vector<TensorDesc>& parts,
                                          const TensorDesc& whole) {
  std::vector<std::int64_t> elements;
  std::int64_t channels = 0;
  for (const TensorDesc& part : parts) {
    Shape expected = whole.shape;
    expected[1] = part.shape[1];
    require_shape(operation, "a part", part, expected);
    channels += part.shape[1];
    elements.push_back(part.shape.elements() / part.shape[0]);
  }
  Shape expected = whole.shape;
  expected[1] = channels;
  require_shape(operation, "the whole", whole, expected);
  return elements;
}

}  // namespace

Kernel concat_forward(const ConcatProblem&, KernelRequest& request) {
  require_counts("concat_forward", request, std::max<std::size_t>(1, request.inputs.size()), 1);
  require_row_major("concat_forward", request);
  const auto elements = sample_elements("concat_forward", request.inputs, request.outputs[0]);
  const auto copy = [elements, samples = request.outputs[0].shape[0]]<typename T>(
                        const BoundOperands& operands, T* y) {
    for (std::int64_t n = 0; n < samples; ++n)
      for (std::size_t part = 0; part < elements.size(); ++part)
        y = std::copy_n(operands.in<T>(static_cast<int>(part)) + n * elements[part], elements[part], y);
  };
  return host_kernel([copy, wide = request.outputs[0].dtype == DType::f64](const BoundOperands& operands) {
    wide ? copy(operands, operands.out<double>(0)) : copy(operands, operands.out(0));
  });
}

Kernel concat_backward(const ConcatProblem&, KernelRequest& request) {
  require_counts("concat_backward", request, 1, std::max<std::size_t>(1, request.outputs.size()));
  require_row_major("concat_backward", request);
  const auto elements = sample_elements("concat_backward", request.outputs, request.inputs[0]);
  return host_kernel([elements, samples = request.inputs[0].shape[0]](const BoundOperands& operands) {
    const float* dy = operands.in(0);
    for (std::int64_t n = 0; n < samples; ++n)
      for (std::size_t part = 0; part < elements.size(); ++part) {
        std::copy_n(dy, elements[part], operands.out(static_cast<int>(part)) + n * elements[part]);
        dy += elements[part];
      }
  });
}

}  // namespace convoy::kernels::reference
