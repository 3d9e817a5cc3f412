// Chooses the shape and the number of strips in a block (depthwise_strips.h).
#include "kernels/conv2d/cuda/depthwise_strips.h"
#include "kernels/device/cuda_kernel.h"

namespace convoy::kernels::conv::strips {
namespace {

using cuda::ceil_div;

// Returns how many pairs of channels a block should have, so that few threads of the last block are
// left without channels.
int lanes_for(int pairs) {
  int best = 1;
  double most = 0;
  for (int lanes = std::min(pairs, kMostLanes); lanes >= std::min(pairs, 16); --lanes) {
    const double busy = double(pairs) / double(ceil_div(pairs, lanes) * lanes);
    if (busy > most + 0.01) most = busy, best = lanes;
  }
  return best;
}

// Chooses how many rows a strip has. The first input rows of a strip complete no output row, so
// longer strips waste less. But there must be enough strips to fill the device several times.
void choose_rows(Call& call, int columns) {
  const int resident =
      cuda::kMultiprocessors * resident_blocks(call.direction, call.filter) * call.strips / call.slabs;
  const int across = int(ceil_div(call.output_w + call.lead(1), columns));
  const int whole = call.output_h + call.lead(0);
  int parts = 1;
  while (std::int64_t{call.samples} * across * parts < 4 * std::int64_t{resident} &&
         whole / (2 * parts) >= 4 * call.filter)
    parts *= 2;
  call.rows = int(ceil_div(whole, parts));
  if (call.transposed) call.rows += call.rows & 1;
  call.across = cuda::Divider(across);
  call.down = cuda::Divider(ceil_div(whole, call.rows));
  call.row_blocks = even_blocks(ceil_div(call.all_strips(), call.strips), resident / call.strips);
}

}  // namespace

Call make_call(const Task& task) {
  Call call{{depthwise_shape(task)}};
  const int pairs = call.channels / 2;
  call.lanes = lanes_for(pairs);
  call.strips = kMostThreads / call.lanes;
  call.slabs = int(ceil_div(pairs, call.lanes));
  choose_rows(call, columns_of(call.direction, call.filter, call.stride));
  return call;
}

}  // namespace convoy::kernels::conv::strips
