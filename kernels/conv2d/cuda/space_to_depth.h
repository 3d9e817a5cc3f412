// Convolutions of few channels (a network's first: 3, or 1) made into ones whose windows the copy engine can cut out.
// Rows and columns that a stride apart become channels, as do a row's taps, of which neighbours lie side by side:
//   folded images   [N, height, width, channels]  pixel (i, j), channel (a, b, c) = x[i stride - padding + a,
//                                                 j stride - padding + b, c], zero outside x
//   folded filters  [K, down, across channels]    tap (i, j), channel (a, b, c) = filter[i rows + a, j stride + b, c]
// y[p, q] is then the sum over `down` rows of `across` pixels, channels and all: windows that overlap in memory.
// `rows` is the stride, or, where that costs less, the whole filter's height. CUDA builds only.
#pragma once

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

inline constexpr int kMostFolded = 192;

struct Fold {
  int rows = 0, columns = 0;  // of x in a folded pixel
  int height = 0, width = 0, channels = 0;
  int down = 0, across = 0;  // folded taps

  int window() const { return across * channels; }  // elements of a row of the window
  std::size_t image_elements(const Geometry& g) const { return std::size_t(g.n) * height * width * channels; }
  std::size_t filter_elements(const Geometry& g) const { return std::size_t(g.k) * down * window(); }
};

// Whether a task can be folded, and the cheaper way; `depth`: elements of a block of channels.
bool can_fold(const Task& task);
Fold fold_of(const Task& task, int depth);

void fold_images(const Task& task, const Fold& fold, const void* images, void* to, Stream stream);
void fold_filters(const Task& task, const Fold& fold, const void* filters, void* to, Stream stream);
// The gradient of the filters from that of the folded ones, f32.
void unfold_gradient(const Task& task, const Fold& fold, const float* folded, float* to, Stream stream);

}  // namespace convoy::kernels::conv
