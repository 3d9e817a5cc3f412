// Turns convolutions of few channels (the first layer of a network has 3, or 1) into convolutions
// with enough channels for TMA. `rows` x `columns` pixels of x become one folded pixel, and several
// taps of a row of the filter become channels, too:
//   folded images   [N, height, width, channels]  pixel (i, j), channel (a, b, c) =
//                   x[i stride - padding + a, j stride - padding + b, c], zero outside x
//   folded filters  [K, down, window]             tap (i, j), channel (a, b, c) =
//                   filter[i rows + a, j stride + b, c], zero at the end of the window
// y[p, q] is then a sum over `down` rows of `across` pixels with all channels. `rows` is the stride
// or, if that is cheaper, the height of the filter.
//
// `window` is the number of elements in one row of a filter's window: `across` pixels, filled up to
// whole blocks of channels, because TMA takes longer for a row that lies partly outside a tensor.
// In the folded images, a window goes on into the pixels that follow. The filters are zero in this
// additional part, so it changes no finite result. A value that is not finite may also reach
// neighbouring outputs. Zeros follow the last image. CUDA builds only.
#pragma once

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

inline constexpr int kMostFolded = 192;

struct SpaceToDepth {
  int rows = 0, columns = 0;  // rows and columns of x in a folded pixel
  int height = 0, width = 0, channels = 0;
  int down = 0, across = 0;  // taps of a folded filter, in height and width
  int window = 0;

  std::int64_t pixel_elements(const Geometry& g) const {
    return std::int64_t{g.n} * height * width * channels;
  }
  std::size_t image_elements(const Geometry& g) const {
    return std::size_t(pixel_elements(g) + window - across * channels);
  }
  std::size_t filter_elements(const Geometry& g) const { return std::size_t(g.k) * down * window; }
};

// Returns whether a task can be folded and is expected to be faster if it is.
bool suits_space_to_depth(const Task& task);
// Returns how to fold the task. `depth` is the number of elements in a block of channels.
SpaceToDepth space_to_depth_of(const Task& task, int depth);

void fold_images(const Task& task, const SpaceToDepth& fold, const void* images, void* to, Stream stream,
                 MemberLayout members);
void fold_filters(const Task& task, const SpaceToDepth& fold, const void* filters, void* to, Stream stream,
                  MemberLayout members);
// Computes the f32 gradient of the filters from the gradient of the folded filters.
void unfold_gradient(const Task& task, const SpaceToDepth& fold, const float* folded, float* to,
                     Stream stream, MemberLayout members);

}  // namespace convoy::kernels::conv
