// Copies channels in plain loops.
#include <algorithm>

#include "kernels/channels/channels.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels::reference {
namespace {

Kernel copy(const char* operation, const ChannelMap& map, KernelRequest& request) {
  require_row_major(operation, request);
  const ImageExtents e = image_extents(request.outputs[0].shape);
  return host_kernel([=](const BoundOperands& b) {
    for (std::int64_t n = 0; n < e.n; ++n)
      for (std::int64_t c = 0; c < map.out; ++c) {
        float* const to = b.out(0) + (n * map.out + c) * e.pixels();
        const std::int64_t source = map.source(c);
        if (source < 0)
          std::fill_n(to, e.pixels(), 0.0f);
        else
          std::copy_n(b.in(0) + (n * map.in + source) * e.pixels(), e.pixels(), to);
      }
  });
}

}  // namespace

Kernel slice_forward(const SliceProblem& problem, KernelRequest& request) {
  return copy("slice_forward", map_of_slice("slice_forward", false, problem, request), request);
}
Kernel slice_backward(const SliceProblem& problem, KernelRequest& request) {
  return copy("slice_backward", map_of_slice("slice_backward", true, problem, request), request);
}
Kernel channel_shuffle(const ShuffleProblem& problem, KernelRequest& request) {
  return copy("channel_shuffle", map_of_shuffle(problem, request), request);
}

}  // namespace convoy::kernels::reference
