// Applies image operations by the host code in kernels/device/image_ops.h.
#include "kernels/device/host_kernel.h"
#include "kernels/device/image_ops.h"
#include "kernels/image_ops/image_ops.h"

namespace convoy::kernels::reference {

Kernel image_ops_forward(const ImageOpsProblem& problem, KernelRequest& request) {
  check_image_ops(problem, request);
  const Shape images = request.inputs[0].shape;
  const auto ops = std::make_shared<ImageOps>(images[2], images[3], images[1]);
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const auto* transforms = operands.in<SampleTransform>(1);
    auto* y = operands.out<std::uint8_t>(0);
    std::copy_n(operands.in<std::uint8_t>(0), images.elements(), y);
    for (std::int64_t n = 0; n < control->valid; ++n)
      ops->apply(std::span(transforms[n].ops).first(static_cast<std::size_t>(problem.most)),
                 y + n * (images.elements() / images[0]));
  });
}

}  // namespace convoy::kernels::reference
