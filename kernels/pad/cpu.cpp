// Pads row_major and blocked images, one line of pixels at a time.
#include "kernels/device/planes.h"
#include "kernels/pad/pad.h"

namespace convoy::kernels::cpu {
namespace {

Kernel pad(const char* operation, const PadProblem& problem, KernelRequest& request) {
  require_counts(operation, request, 1, 1);
  const TensorDesc& x = request.inputs[0];
  TensorDesc& y = request.outputs[0];
  match_layout(operation, y, x);
  require_shape(operation, "the output", y, pad_output_shape(problem, x.shape));
  const Planes from = planes_of(operation, x), to = planes_of(operation, y);
  const ImageExtents in = image_extents(x.shape), out = image_extents(y.shape);
  // In each line of y, columns [begin, end) are copied from x. The other columns are padding.
  const std::int64_t begin = std::clamp<std::int64_t>(problem.left, 0, out.w);
  const std::int64_t end = std::clamp<std::int64_t>(problem.left + in.w, begin, out.w);
  return host_kernel([=, y = y](const BoundOperands& b) {
    for_each_plane(to, [&](std::int64_t i) {
      for (std::int64_t row = 0; row < out.h; ++row) {
        float* const line = b.out(0) + i * to.elements() + row * out.w * to.lanes;
        const std::int64_t source = row - problem.top;
        if (source < 0 || source >= in.h) {
          std::fill_n(line, out.w * to.lanes, problem.value);
          continue;
        }
        const float* const pixels =
            b.in(0) + i * from.elements() + (source * in.w + begin - problem.left) * to.lanes;
        std::fill_n(line, begin * to.lanes, problem.value);
        std::copy_n(pixels, (end - begin) * to.lanes, line + begin * to.lanes);
        std::fill(line + end * to.lanes, line + out.w * to.lanes, problem.value);
      }
    });
    if (problem.value != 0) clear_channel_padding(y, b.out(0));
  });
}

}  // namespace

Kernel pad_forward(const PadProblem& problem, KernelRequest& request) {
  return pad("pad_forward", problem, request);
}
Kernel pad_backward(const PadProblem& problem, KernelRequest& request) {
  return pad("pad_backward", turned(problem), request);
}

}  // namespace convoy::kernels::cpu
