// Concatenates row_major and blocked tensors. If the channels of every part but the last fill whole
// channel blocks, a sample of a part is a contiguous range of the result and is copied at once.
// Otherwise channels are copied one by one.
#include <algorithm>

#include "kernels/concat/concat.h"
#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"

namespace convoy::kernels::cpu {
namespace {

struct Part {
  std::int64_t channels, begin;  // begin: the part's first channel in the whole tensor
  std::int64_t sample;           // how many floats a sample of the part has, padding included
};

struct Geometry {
  std::int64_t samples, pixels, lanes, whole_sample;
  std::vector<Part> parts;
  bool aligned = true;
};

Geometry geometry_of(const char* operation, const std::vector<TensorDesc>& parts, const TensorDesc& whole) {
  const ImageExtents e = image_extents(whole.shape);
  Geometry g{e.n, e.pixels(), channel_lanes(operation, whole), 0, {}, true};
  const auto padded = [&](std::int64_t channels) {
    return (channels + g.lanes - 1) / g.lanes * g.lanes * g.pixels;
  };
  g.whole_sample = padded(e.c);
  std::int64_t channels = 0;
  for (const TensorDesc& part : parts) {
    Shape expected = whole.shape;
    expected[1] = part.shape[1];
    require_shape(operation, "a part", part, expected);
    g.aligned = g.aligned && channels % g.lanes == 0;
    g.parts.push_back({part.shape[1], channels, padded(part.shape[1])});
    channels += part.shape[1];
  }
  Shape expected = whole.shape;
  expected[1] = channels;
  require_shape(operation, "the whole", whole, expected);
  return g;
}

std::int64_t channel_offset(const Geometry& g, std::int64_t channel) {
  return channel / g.lanes * g.lanes * g.pixels + channel % g.lanes;
}

void copy_channel(const Geometry& g, const float* from, float* to) {
  for (std::int64_t pixel = 0; pixel < g.pixels; ++pixel) to[pixel * g.lanes] = from[pixel * g.lanes];
}

void zero_padding(const Geometry& g, std::int64_t channels, float* sample) {
  for (std::int64_t channel = channels; channel % g.lanes != 0; ++channel)
    for (std::int64_t pixel = 0; pixel < g.pixels; ++pixel)
      sample[channel_offset(g, channel) + pixel * g.lanes] = 0;
}

void join(const Geometry& g, std::int64_t n, const Part& part, const float* from, float* whole) {
  from += n * part.sample;
  whole += n * g.whole_sample;
  if (g.aligned) {
    std::copy_n(from, part.sample, whole + channel_offset(g, part.begin));
    return;
  }
  for (std::int64_t c = 0; c < part.channels; ++c)
    copy_channel(g, from + channel_offset(g, c), whole + channel_offset(g, part.begin + c));
  if (&part == &g.parts.back()) zero_padding(g, part.begin + part.channels, whole);
}

void split(const Geometry& g, std::int64_t n, const Part& part, const float* whole, float* to) {
  to += n * part.sample;
  whole += n * g.whole_sample;
  if (g.aligned) {
    std::copy_n(whole + channel_offset(g, part.begin), part.sample, to);
    return;
  }
  for (std::int64_t c = 0; c < part.channels; ++c)
    copy_channel(g, whole + channel_offset(g, part.begin + c), to + channel_offset(g, c));
  zero_padding(g, part.channels, to);
}

}  // namespace

Kernel concat_forward(const ConcatProblem&, KernelRequest& request) {
  require_counts("concat_forward", request, std::max<std::size_t>(1, request.inputs.size()), 1);
  match_layout("concat_forward", request.outputs[0], request.inputs[0]);
  for (TensorDesc& input : request.inputs) match_layout("concat_forward", input, request.outputs[0]);
  return host_kernel(
      [g = geometry_of("concat_forward", request.inputs, request.outputs[0])](const BoundOperands& operands) {
        const auto parts = static_cast<std::int64_t>(g.parts.size());
        parallel_for(g.samples * parts, [&](std::int64_t i) {
          const auto part = static_cast<int>(i % parts);
          join(g, i / parts, g.parts[part], operands.in(part), operands.out(0));
        });
      });
}

Kernel concat_backward(const ConcatProblem&, KernelRequest& request) {
  require_counts("concat_backward", request, 1, std::max<std::size_t>(1, request.outputs.size()));
  for (TensorDesc& output : request.outputs) match_layout("concat_backward", output, request.inputs[0]);
  return host_kernel([g = geometry_of("concat_backward", request.outputs, request.inputs[0])](
                         const BoundOperands& operands) {
    const auto parts = static_cast<std::int64_t>(g.parts.size());
    parallel_for(g.samples * parts, [&](std::int64_t i) {
      const auto part = static_cast<int>(i % parts);
      split(g, i / parts, g.parts[part], operands.in(0), operands.out(part));
    });
  });
}

}  // namespace convoy::kernels::cpu
