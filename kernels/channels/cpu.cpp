// Copies channels of row_major and blocked tensors. A block of output channels is copied at once if
// it equals one block of the input, else channel by channel.
#include "kernels/channels/channels.h"
#include "kernels/device/planes.h"

namespace convoy::kernels::cpu {
namespace {

// Returns whether output block `block` equals one block of the input. Two lanes that are both
// padding count as equal.
template <int kLanes>
bool stays_together(const ChannelMap& map, std::int64_t block) {
  const std::int64_t first = map.source(block * kLanes);
  if (first < 0 || first % kLanes != 0) return false;
  for (std::int64_t lane = 1; lane < kLanes; ++lane) {
    const std::int64_t c = block * kLanes + lane;
    const bool padding = c >= map.out && first + lane >= map.in;
    if (!padding && (c >= map.out || map.source(c) != first + lane)) return false;
  }
  return true;
}

template <int kLanes>
void copy_block(const ChannelMap& map, const Planes& from, std::int64_t n, std::int64_t block, const float* x,
                float* to) {
  const auto channel = [&](std::int64_t c) {
    return x + (n * from.blocks + c / kLanes) * from.elements() + c % kLanes;
  };
  if (stays_together<kLanes>(map, block)) {
    std::copy_n(channel(map.source(block * kLanes)), from.elements(), to);
    return;
  }
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    const std::int64_t c = block * kLanes + lane, source = c < map.out ? map.source(c) : -1;
    const float* const column = source < 0 ? nullptr : channel(source);
    for (std::int64_t pixel = 0; pixel < from.pixels; ++pixel)
      to[pixel * kLanes + lane] = column == nullptr ? 0.0f : column[pixel * kLanes];
  }
}

Kernel copy(const char* operation, const ChannelMap& map, KernelRequest& request) {
  match_layout(operation, request.outputs[0], request.inputs[0]);
  const Planes from = planes_of(operation, request.inputs[0]), to = planes_of(operation, request.outputs[0]);
  return with_lanes(to.lanes, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    return host_kernel([=](const BoundOperands& b) {
      for_each_plane(to, [&](std::int64_t i) {
        copy_block<kLanes>(map, from, i / to.blocks, i % to.blocks, b.in(0), b.out(0) + i * to.elements());
      });
    });
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

}  // namespace convoy::kernels::cpu
