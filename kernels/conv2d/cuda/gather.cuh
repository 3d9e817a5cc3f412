// Lets the mma_sync and register_tiles kernels (kernels/gemm) read the im2col matrix straight from
// an NHWC tensor. Window computes where an element of the matrix lies in the tensor. The carriers
// below copy the elements to shared memory by cp.async, for one pipeline stage at a time. Device
// code.
#pragma once

#include "kernels/conv2d/engines.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/gemm/common/pipeline.cuh"

namespace convoy::kernels::conv {

// Maps elements of the im2col matrix to a tensor. A row of the matrix is an output position (image,
// i, j), and a column is a tap (r, s) and a channel. The element lies in row (i * step + origin + r
// * reach) / divide of the tensor. It is zero if this quotient is not an integer or lies outside
// the tensor. The tensor's column follows from j and s in the same way.
//   forward, backward_weights  x:  step = stride, origin = -padding, reach = dilation, divide = 1
//   backward_data              dy: step = 1, origin = padding, reach = -dilation, divide = stride
struct Window {
  int height, width, channels;  // the tensor's height and width, and how many channels are read
  int pitch;                    // elements from one pixel to the next
  int step[2], origin[2], reach[2];
  cuda::Divider divide[2];
  bool divides;                     // whether a divisor in `divide` is above 1
  cuda::Divider across, positions;  // divide by the output positions in a row, and in an image
  cuda::Divider channel, tap;       // divide by the channels, and by the taps in a row of the filter
  std::int64_t rows;                // the rows of the im2col matrix
  int columns;

  struct Position {
    int image;  // the number of pixels in the tensor before this image
    int h, w;
  };
  struct Tap {
    int h, w, channel;
  };
  __device__ Position position(std::int64_t row) const {
    const auto index = static_cast<std::uint32_t>(row);
    const std::uint32_t image = positions(index), inside = index - image * positions.divisor;
    const std::uint32_t i = across(inside), j = inside - i * across.divisor;
    return {int(image) * height * width, int(i) * step[0] + origin[0], int(j) * step[1] + origin[1]};
  }
  __device__ Tap tap_of(int column) const {
    const std::uint32_t index = channel(std::uint32_t(column)), r = tap(index);
    const int s = int(index - r * tap.divisor);
    return {int(r) * reach[0], s * reach[1], column - int(index) * channels};
  }
  // Returns the index in the tensor of an element of the matrix, or -1 if the element is zero.
  __device__ std::int64_t index(const Position& at, const Tap& tap_at) const {
    int i = at.h + tap_at.h, j = at.w + tap_at.w;
    if (divides) {
      const int h = i, w = j;
      if (h < 0 || w < 0) return -1;
      i = int(divide[0](std::uint32_t(h))), j = int(divide[1](std::uint32_t(w)));
      if (i * int(divide[0].divisor) != h || j * int(divide[1].divisor) != w) return -1;
    }
    if (unsigned(i) >= unsigned(height) || unsigned(j) >= unsigned(width)) return -1;
    return (std::int64_t{at.image} + i * width + j) * pitch + tap_at.channel;
  }
};

// Returns the Window of a direction. Neighbouring pixels of the tensor are `pitch` elements apart.
inline Window window_of(Direction direction, const Geometry& g, int pitch) {
  const bool back = direction == Direction::backward_data;
  Window window{};
  window.height = back ? g.p : g.h;
  window.width = back ? g.q : g.w;
  window.channels = back ? g.k : g.c;
  window.pitch = pitch;
  for (int axis = 0; axis < 2; ++axis) {
    window.step[axis] = back ? 1 : g.stride[axis];
    window.origin[axis] = back ? g.padding[axis] : -g.padding[axis];
    window.reach[axis] = back ? -g.dilation[axis] : g.dilation[axis];
    window.divide[axis] = cuda::Divider(back ? g.stride[axis] : 1);
    window.divides = window.divides || window.divide[axis].divisor > 1;
  }
  const int height = back ? g.h : g.p, width = back ? g.w : g.q;
  window.across = cuda::Divider(width);
  window.positions = cuda::Divider(std::int64_t{height} * width);
  window.channel = cuda::Divider(window.channels);
  window.tap = cuda::Divider(g.s);
  window.rows = std::int64_t{g.n} * height * width;
  window.columns = g.taps() * window.channels;
  return window;
}

// Copies the im2col matrix to shared memory if the product's k runs along a row of the matrix,
// which is contiguous. A thread keeps the positions of its rows in registers and walks along the
// columns.
template <class Operand, class S, int threads, bool vectors>
class PositionsCarrier {
  using T = typename Operand::T;

 public:
  __device__ PositionsCarrier(const Operand& operand, std::ptrdiff_t member_stride, std::int64_t first,
                              std::int64_t k_begin, std::int64_t k_end)
      : operand_(operand),
        data_(cuda::of_member(operand.data, member_stride)),
        k_(int(k_begin)),
        k_end_(int(k_end)) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const std::int64_t row = first + line() + i * kLinesAtOnce;
      positions_[i] = operand.window.position(row < operand.extent ? row : 0);
      if (row >= operand.extent) positions_[i].h = kNowhere;
    }
  }

  __device__ void fetch(T* to) {
    T* target = to + line() * S::pitch + offset();
    if constexpr (vectors) {
      const Window::Tap tap = operand_.window.tap_of(k_ + offset());
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const std::int64_t index = k_ + offset() < k_end_ ? operand_.window.index(positions_[i], tap) : -1;
        gemm::copy_async<16>(target + i * kLinesAtOnce * S::pitch, data_ + (index < 0 ? 0 : index),
                             index < 0 ? 0 : 16);
      }
    } else {
#pragma unroll 1
      for (int v = 0; v < S::vector; ++v) {
        const int k = k_ + offset() + v;
        const Window::Tap tap = operand_.window.tap_of(k);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          const std::int64_t index = k < k_end_ ? operand_.window.index(positions_[i], tap) : -1;
          target[i * kLinesAtOnce * S::pitch + v] = index < 0 ? T{} : data_[index];
        }
      }
    }
    k_ += S::depth;
  }

 private:
  static constexpr int kNowhere = -(1 << 30);
  static constexpr int kPerLine = S::width / S::vector, kLinesAtOnce = threads / kPerLine;
  static constexpr int kCount = S::lines / kLinesAtOnce;
  static_assert(kCount > 0 && kCount * kLinesAtOnce == S::lines);
  __device__ static int line() { return int(threadIdx.x) / kPerLine; }
  __device__ static int offset() { return int(threadIdx.x) % kPerLine * S::vector; }

  const Operand& operand_;
  const T* const data_;
  int k_;
  const int k_end_;
  Window::Position positions_[kCount];
};

// Copies the im2col matrix to shared memory if the product's k runs down a column of the matrix,
// which is not contiguous. A thread keeps the taps of its columns in registers and walks down the
// rows.
template <class Operand, class S, int threads, bool vectors>
class TapsCarrier {
  using T = typename Operand::T;

 public:
  __device__ TapsCarrier(const Operand& operand, std::ptrdiff_t member_stride, std::int64_t first,
                         std::int64_t k_begin, std::int64_t k_end)
      : operand_(operand),
        data_(cuda::of_member(operand.data, member_stride)),
        k_(k_begin),
        k_end_(k_end),
        column_(int(first) + offset()),
        tap_(operand.window.tap_of(column_)) {}

  __device__ void fetch(T* to) {
    T* target = to + line() * S::pitch + offset();
#pragma unroll
    for (int i = 0; i < kCount; ++i, target += kLinesAtOnce * S::pitch) {
      const std::int64_t row = k_ + line() + i * kLinesAtOnce;
      const bool there = row < k_end_;
      const Window::Position at = operand_.window.position(there ? row : 0);
      if constexpr (vectors) {
        const std::int64_t index =
            there && column_ < operand_.window.columns ? operand_.window.index(at, tap_) : -1;
        gemm::copy_async<16>(target, data_ + (index < 0 ? 0 : index), index < 0 ? 0 : 16);
      } else {
#pragma unroll 1
        for (int v = 0; v < S::vector; ++v) {
          const std::int64_t index = there && column_ + v < operand_.window.columns
                                         ? operand_.window.index(at, operand_.window.tap_of(column_ + v))
                                         : -1;
          target[v] = index < 0 ? T{} : data_[index];
        }
      }
    }
    k_ += S::depth;
  }

 private:
  static constexpr int kPerLine = S::width / S::vector, kLinesAtOnce = threads / kPerLine;
  static constexpr int kCount = S::lines / kLinesAtOnce;
  static_assert(kCount > 0 && kCount * kLinesAtOnce == S::lines);
  __device__ static int line() { return int(threadIdx.x) / kPerLine; }
  __device__ static int offset() { return int(threadIdx.x) % kPerLine * S::vector; }

  const Operand& operand_;
  const T* const data_;
  std::int64_t k_;
  const std::int64_t k_end_;
  const int column_;
  const Window::Tap tap_;
};

// The im2col matrix as an operand of mma_sync. In forward and backward_data it is A, and k is
// contiguous in memory. In backward_weights it is B, and k is not contiguous.
template <typename T_, bool k_contiguous_>
struct WindowOperand {
  using T = T_;
  static constexpr bool k_contiguous = k_contiguous_;
  template <class S, int threads, bool vectors>
  using Carrier = std::conditional_t<k_contiguous, PositionsCarrier<WindowOperand, S, threads, vectors>,
                                     TapsCarrier<WindowOperand, S, threads, vectors>>;
  const T* data;
  std::int64_t extent;  // rows of A (positions), or columns of B (taps times channels)
  Window window;
};

// Copies the im2col matrix to shared memory for the register_tiles kernel, which requires m or n,
// and not k, to be contiguous in shared memory.
template <class Operand, int extent, int threads, int depth>
class PositionsToPlanes {
 public:
  __device__ PositionsToPlanes(const Operand& operand, std::ptrdiff_t member_stride, std::int64_t first,
                               std::int64_t k_begin, std::int64_t k_end)
      : operand_(operand),
        data_(cuda::of_member(operand.data, member_stride)),
        k_(int(k_begin)),
        k_end_(int(k_end)) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const std::int64_t row = first + line() + i * kLinesAtOnce;
      positions_[i] = operand.window.position(row < operand.extent ? row : 0);
      if (row >= operand.extent) positions_[i].h = -(1 << 30);
    }
  }
  __device__ void fetch(float* to) {
    float* target = to + offset() * kPitch + line();
#pragma unroll
    for (int k = 0; k < depth; k += kPerLine) {
      const int column = k_ + offset() + k;
      const Window::Tap tap = operand_.window.tap_of(column);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const std::int64_t index = column < k_end_ ? operand_.window.index(positions_[i], tap) : -1;
        gemm::copy_async<4>(target + k * kPitch + i * kLinesAtOnce, data_ + (index < 0 ? 0 : index),
                            index < 0 ? 0 : 4);
      }
    }
    k_ += depth;
  }

 private:
  static constexpr int kPitch = extent + 4, kPerLine = 8, kLinesAtOnce = threads / kPerLine;
  static constexpr int kCount = extent / kLinesAtOnce;
  static_assert(kCount > 0 && kCount * kLinesAtOnce == extent);
  __device__ static int line() { return int(threadIdx.x) / kPerLine; }
  __device__ static int offset() { return int(threadIdx.x) % kPerLine; }

  const Operand& operand_;
  const float* const data_;
  int k_;
  const int k_end_;
  Window::Position positions_[kCount];
};

template <class Operand, int extent, int threads, int depth>
class TapsToPlanes {
 public:
  __device__ TapsToPlanes(const Operand& operand, std::ptrdiff_t member_stride, std::int64_t first,
                          std::int64_t k_begin, std::int64_t k_end)
      : operand_(operand),
        data_(cuda::of_member(operand.data, member_stride)),
        k_(k_begin),
        k_end_(k_end),
        column_(int(first) + offset()),
        tap_(operand.window.tap_of(column_)) {}
  __device__ void fetch(float* to) {
    float* target = to + line() * kPitch + offset();
#pragma unroll
    for (int i = 0; i < kCount; ++i, target += kLinesAtOnce * kPitch) {
      const std::int64_t row = k_ + line() + i * kLinesAtOnce;
      const bool there = row < k_end_;
      const Window::Position at = operand_.window.position(there ? row : 0);
      if (operand_.vectors) {
        const std::int64_t index =
            there && column_ < operand_.window.columns ? operand_.window.index(at, tap_) : -1;
        gemm::copy_async<16>(target, data_ + (index < 0 ? 0 : index), index < 0 ? 0 : 16);
      } else {
#pragma unroll 1
        for (int v = 0; v < 4; ++v) {
          const std::int64_t index = there && column_ + v < operand_.window.columns
                                         ? operand_.window.index(at, operand_.window.tap_of(column_ + v))
                                         : -1;
          gemm::copy_async<4>(target + v, data_ + (index < 0 ? 0 : index), index < 0 ? 0 : 4);
        }
      }
    }
    k_ += depth;
  }

 private:
  static constexpr int kPitch = extent + 4, kPerLine = extent / 4, kLinesAtOnce = threads / kPerLine;
  static constexpr int kCount = depth / kLinesAtOnce;
  static_assert(kCount > 0 && kCount * kLinesAtOnce == depth);
  __device__ static int line() { return int(threadIdx.x) / kPerLine; }
  __device__ static int offset() { return int(threadIdx.x) % kPerLine * 4; }

  const Operand& operand_;
  const float* const data_;
  std::int64_t k_;
  const std::int64_t k_end_;
  const int column_;
  const Window::Tap tap_;
};

template <bool k_contiguous_>
struct WindowPlanes {
  static constexpr bool k_contiguous = k_contiguous_;
  template <int extent, int threads, int depth>
  using Carrier = std::conditional_t<k_contiguous, PositionsToPlanes<WindowPlanes, extent, threads, depth>,
                                     TapsToPlanes<WindowPlanes, extent, threads, depth>>;
  const float* data;
  std::int64_t extent;
  bool vectors;  // 16-byte copies are possible
  Window window;
};

}  // namespace convoy::kernels::conv
