#include <algorithm>

#include "kernels/conv2d/cuda/space_to_depth.h"
#include "kernels/conv2d/im2col/views.cuh"

namespace convoy::kernels::conv {
namespace {

using gemm::ceil_div;

View forward_view(const Task& task) {
  const Geometry& g = task.geometry;
  View view;
  view.map.type = task.type();
  view.map.n = g.n, view.map.h = g.h, view.map.w = g.w, view.map.c = g.c;
  view.map.down = g.p, view.map.across = g.q;
  for (int axis = 0; axis < 2; ++axis) {
    view.map.first[axis] = -g.padding[axis];
    view.map.step[axis] = g.stride[axis];
    view.reach[axis] = g.dilation[axis];
  }
  view.taps[0] = g.r, view.taps[1] = g.s;
  view.filter_taps = {0, g.s, 1};
  return view;
}

View folded_view(const Task& task, const SpaceToDepth& fold) {
  const Geometry& g = task.geometry;
  View view;
  view.map.type = task.type();
  view.map.n = g.n, view.map.h = fold.height, view.map.w = g.q, view.map.c = fold.window;
  view.map.pitch_w = fold.channels;
  view.map.pitch_h = std::int64_t{fold.width} * fold.channels;
  view.map.down = g.p, view.map.across = g.q;
  view.taps[0] = fold.down;
  view.filter_taps = {0, 1, 0};
  return view;
}

// Returns one view of a strided backward_data. There is a view for each pair of residues of dx's
// row and column modulo the stride. The view has no taps if dx is zero at all pixels with these
// residues.
View phase_view(const Task& task, int residue_h, int residue_w) {
  const Geometry& g = task.geometry;
  View view;
  view.map.type = task.type();
  view.map.n = g.n, view.map.h = g.p, view.map.w = g.q, view.map.c = g.k;
  const int residue[2] = {residue_h, residue_w}, extent[2] = {g.h, g.w}, kernel[2] = {g.r, g.s};
  int first_tap[2], tap_step[2], count[2];
  for (int axis = 0; axis < 2; ++axis) {
    const int stride = g.stride[axis];
    // Tap r contributes to row d = i * stride + residue of dx. It reads row (d + padding - r *
    // dilation) / stride of dy, if this quotient is an integer.
    const int start = (residue[axis] + g.padding[axis]) % stride;
    tap_step[axis] = stride;
    view.reach[axis] = stride == 1 ? g.dilation[axis] : 1;
    const int taps = start < kernel[axis] ? (kernel[axis] - 1 - start) / stride + 1 : 0;
    view.taps[axis] = taps;
    // backward_data reads the taps in reverse order, so the window begins with the last tap.
    first_tap[axis] = start + stride * (taps - 1);
    view.map.first[axis] = (residue[axis] + g.padding[axis] - start) / stride - (taps - 1) * view.reach[axis];
    count[axis] = int(ceil_div(extent[axis] - residue[axis], stride));
  }
  view.map.down = std::max(count[0], 0), view.map.across = std::max(count[1], 0);
  view.filter_taps = {first_tap[0] * g.s + first_tap[1], -tap_step[0] * g.s, -tap_step[1]};
  view.out_offset = (std::int64_t{residue_h} * g.w + residue_w) * g.c;
  return view;
}

}  // namespace

std::vector<View> views_of(const Task& task, Engine engine) {
  if (engine == Engine::folded) return {folded_view(task, space_to_depth_of(task, depth_of(task)))};
  if (task.direction != Direction::backward_data) return {forward_view(task)};
  std::vector<View> views;
  for (int h = 0; h < std::min(task.geometry.stride[0], task.geometry.h); ++h)
    for (int w = 0; w < std::min(task.geometry.stride[1], task.geometry.w); ++w)
      views.push_back(phase_view(task, h, w));
  return views;
}

}  // namespace convoy::kernels::conv
