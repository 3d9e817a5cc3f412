// Softmax of row_major and blocked tensors, one row at a time. A row is the channels of a pixel.
#include "kernels/activation/formulas.h"
#include "kernels/device/planes.h"
#include "kernels/softmax/softmax.h"

namespace convoy::kernels::cpu {
namespace {

// Says where the elements of a row lie: in blocks of `lanes` neighbouring elements. The distance
// from block to block is `pitch` elements.
struct Row {
  std::int64_t blocks, lanes, pitch, channels;

  template <typename Visit>
  [[gnu::always_inline]] void for_each(const Visit& visit) const {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t used = std::min(lanes, channels - block * lanes);
#pragma omp simd
      for (std::int64_t lane = 0; lane < used; ++lane) visit(block * pitch + lane);
    }
  }
};

CONVOY_VECTORISED void forward_row(const Row& row, const float* x, float* y) {
  float most = x[0], sum = 0;
  for (std::int64_t block = 0; block < row.blocks; ++block) {
    const std::int64_t used = std::min(row.lanes, row.channels - block * row.lanes);
#pragma omp simd reduction(max : most)
    for (std::int64_t lane = 0; lane < used; ++lane) most = std::max(most, x[block * row.pitch + lane]);
  }
  row.for_each([=](std::int64_t at)
                   __attribute__((always_inline)) { y[at] = activation::exp_of(x[at] - most); });
  for (std::int64_t block = 0; block < row.blocks; ++block) {
    const std::int64_t used = std::min(row.lanes, row.channels - block * row.lanes);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t lane = 0; lane < used; ++lane) sum += y[block * row.pitch + lane];
  }
  const float factor = 1 / sum;
  row.for_each([=](std::int64_t at) __attribute__((always_inline)) { y[at] *= factor; });
}

CONVOY_VECTORISED void backward_row(const Row& row, const float* y, const float* dy, float* dx) {
  float sum = 0;
  for (std::int64_t block = 0; block < row.blocks; ++block) {
    const std::int64_t used = std::min(row.lanes, row.channels - block * row.lanes);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t lane = 0; lane < used; ++lane)
      sum += y[block * row.pitch + lane] * dy[block * row.pitch + lane];
  }
  row.for_each([=](std::int64_t at) __attribute__((always_inline)) { dx[at] = y[at] * (dy[at] - sum); });
}

// Calls body(Row, index of the row's first element) for all rows, in parallel.
template <typename Body>
void for_each_row(const Planes& planes, const Body& body) {
  const bool matrix = planes.lanes == 1 && planes.pixels == 1;
  const Row row = matrix ? Row{1, planes.channels, 0, planes.channels}
                         : Row{planes.blocks, planes.lanes, planes.elements(), planes.channels};
  const std::int64_t piece = std::max<std::int64_t>(1, kPiece / planes.channels);
  parallel_pieces(planes.samples * planes.pixels, piece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      body(row, i / planes.pixels * planes.blocks * planes.elements() + i % planes.pixels * planes.lanes);
  });
}

}  // namespace

Kernel softmax_forward(const SoftmaxProblem&, KernelRequest& request) {
  require_counts("softmax_forward", request, 1, 1);
  const TensorDesc& x = request.inputs[0];
  match_layout("softmax_forward", request.outputs[0], x);
  require_shape("softmax_forward", "y", request.outputs[0], x.shape);
  return host_kernel(
      [planes = planes_of("softmax_forward", x), y = request.outputs[0]](const BoundOperands& b) {
        for_each_row(planes, [&](const Row& row, std::int64_t first) {
          forward_row(row, b.in(0) + first, b.out(0) + first);
        });
        clear_channel_padding(y, b.out(0));
      },
      {{0, 0}});
}

Kernel softmax_backward(const SoftmaxProblem&, KernelRequest& request) {
  require_counts("softmax_backward", request, 2, 1);
  const TensorDesc& y = request.inputs[0];
  match_layout("softmax_backward", request.inputs[1], y);
  match_layout("softmax_backward", request.outputs[0], y);
  for (const TensorDesc& input : request.inputs)
    require_shape("softmax_backward", "an input", input, request.outputs[0].shape);
  return host_kernel(
      [planes = planes_of("softmax_backward", y), dx = request.outputs[0]](const BoundOperands& b) {
        for_each_row(planes, [&](const Row& row, std::int64_t first) {
          backward_row(row, b.in(0) + first, b.in(1) + first, b.out(0) + first);
        });
        clear_channel_padding(dx, b.out(0));
      },
      {{0, 0}, {1, 0}});
}

}  // namespace convoy::kernels::cpu
