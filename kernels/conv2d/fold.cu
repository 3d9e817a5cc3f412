#include <algorithm>

#include "kernels/conv2d/fold.h"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::conv {
namespace {

using cuda::ceil_div;

// Offsets in x of a folded pixel's channels; row < 0 where there is none.
struct FoldTable {
  std::int8_t row[kMostFolded], column[kMostFolded];
  std::int16_t channel[kMostFolded];
};

FoldTable table_of(const Geometry& g, const Fold& fold) {
  FoldTable table{};
  for (int i = 0; i < kMostFolded; ++i) {
    const int a = i / (fold.columns * g.c), b = i / g.c % fold.columns;
    table.row[i] = std::int8_t(a < fold.rows ? a : -1);
    table.column[i] = std::int8_t(b);
    table.channel[i] = std::int16_t(i % g.c);
  }
  return table;
}

// 16 bytes a thread.
template <typename T>
__global__ void fold_pixels(const __grid_constant__ Geometry g, const __grid_constant__ Fold fold,
                            const __grid_constant__ FoldTable table, cuda::Divider packs, cuda::Divider width,
                            cuda::Divider height, const T* x, T* to, std::int64_t items) {
  constexpr int V = cuda::kPackWidth<T>;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < items; i += stride) {
    const std::uint32_t pixel = packs(std::uint32_t(i)), line = width(pixel), n = height(line);
    const int first = int(std::uint32_t(i) - pixel * packs.divisor) * V;
    const int h0 = int(line - n * height.divisor) * g.stride[0] - g.padding[0];
    const int w0 = int(pixel - line * width.divisor) * g.stride[1] - g.padding[1];
    cuda::Pack<T, V> pack;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int a = table.row[first + v], h = h0 + a, w = w0 + table.column[first + v];
      const bool there = a >= 0 && h >= 0 && h < g.h && w >= 0 && w < g.w;
      pack.value[v] =
          there ? x[((std::int64_t{n} * g.h + h) * g.w + w) * g.c + table.channel[first + v]] : T(0.0f);
    }
    cuda::store_pack(to + i * V, pack);
  }
}

// The filter's element that a folded one holds, -1 for none.
__device__ std::int64_t unfolded(const Geometry& g, const Fold& fold, const FoldTable& table, int element) {
  const int channel = element % fold.channels, j = element / fold.channels % fold.across,
            i = element / fold.channels / fold.across % fold.down,
            k = element / fold.channels / fold.across / fold.down;
  const int a = table.row[channel], r = i * fold.rows + a, s = j * fold.columns + table.column[channel];
  if (a < 0 || r >= g.r || s >= g.s) return -1;
  return ((std::int64_t{k} * g.r + r) * g.s + s) * g.c + table.channel[channel];
}

template <typename T>
__global__ void fold_taps(const __grid_constant__ Geometry g, const __grid_constant__ Fold fold,
                          const __grid_constant__ FoldTable table, const T* filters, T* to, int elements) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
    const std::int64_t from = unfolded(g, fold, table, i);
    to[i] = from < 0 ? T(0.0f) : filters[from];
  }
}

__global__ void unfold_taps(const __grid_constant__ Geometry g, const __grid_constant__ Fold fold,
                            const __grid_constant__ FoldTable table, const float* folded, float* to,
                            int elements) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
    const std::int64_t at = unfolded(g, fold, table, i);
    if (at >= 0) to[at] = folded[i];
  }
}

Fold fold_with(const Geometry& g, int rows, int multiple) {
  Fold fold;
  fold.rows = rows;
  fold.columns = g.stride[1];
  fold.channels = int(ceil_div(std::int64_t{rows} * fold.columns * g.c, multiple)) * multiple;
  fold.down = int(ceil_div(g.r, rows));
  fold.across = int(ceil_div(g.s, fold.columns));
  fold.height = g.p + fold.down - 1;
  fold.width = g.q + fold.across - 1;
  return fold;
}

// Microseconds: the folded images written and read, and the product over padded windows.
double cost(const Task& task, const Fold& fold, int depth) {
  const Geometry& g = task.geometry;
  const double bytes = 2.2 * double(fold.image_elements(g)) * double(bytes_of(task.type()));
  const double k = double(fold.down) * double(ceil_div(fold.window(), depth) * depth);
  return bytes / 4.1e6 + 2 * double(g.y_pixels()) * k * double(ceil_div(g.k, 64) * 64) / 350e6;
}

int multiple_of(const Task& task) { return int(16 / bytes_of(task.type())); }

}  // namespace

bool can_fold(const Task& task) {
  const Geometry& g = task.geometry;
  if (g.groups != 1 || g.dilation[0] != 1 || g.dilation[1] != 1) return false;
  if (task.direction == Direction::backward_data || g.c >= 64 || g.stride[0] > 8 || g.stride[1] > 8)
    return false;
  const Fold fold = fold_with(g, g.stride[0], multiple_of(task));
  const std::int64_t packs = std::int64_t(fold.image_elements(g)) / multiple_of(task);
  return fold.channels <= kMostFolded && fold.down <= 120 && packs < std::int64_t{1} << 31;
}

Fold fold_of(const Task& task, int depth) {
  const Geometry& g = task.geometry;
  const Fold by_stride = fold_with(g, g.stride[0], multiple_of(task)),
             whole = fold_with(g, g.r, multiple_of(task));
  const std::int64_t packs = std::int64_t(whole.image_elements(g)) / multiple_of(task);
  if (whole.channels > kMostFolded || g.r > 120 || packs >= std::int64_t{1} << 31) return by_stride;
  return cost(task, whole, depth) < cost(task, by_stride, depth) ? whole : by_stride;
}

void fold_images(const Task& task, const Fold& fold, const void* images, void* to, Stream stream) {
  const auto start = [&]<typename T>(T) {
    const int packs = fold.channels / cuda::kPackWidth<T>;
    const std::int64_t items = std::int64_t(fold.image_elements(task.geometry)) / cuda::kPackWidth<T>;
    cuda::launch(fold_pixels<T>, cuda::grid_for(items), cuda::kThreads, stream, task.geometry, fold,
                 table_of(task.geometry, fold), cuda::Divider(packs), cuda::Divider(fold.width),
                 cuda::Divider(fold.height), static_cast<const T*>(images), static_cast<T*>(to), items);
  };
  task.type() == DType::bf16 ? start(cuda::bf16{}) : start(float{});
}

void fold_filters(const Task& task, const Fold& fold, const void* filters, void* to, Stream stream) {
  const auto start = [&]<typename T>(T) {
    const int elements = int(fold.filter_elements(task.geometry));
    cuda::launch(fold_taps<T>, cuda::resident_grid(elements), cuda::kThreads, stream, task.geometry, fold,
                 table_of(task.geometry, fold), static_cast<const T*>(filters), static_cast<T*>(to),
                 elements);
  };
  task.type() == DType::bf16 ? start(cuda::bf16{}) : start(float{});
}

void unfold_gradient(const Task& task, const Fold& fold, const float* folded, float* to, Stream stream) {
  const int elements = int(fold.filter_elements(task.geometry));
  cuda::launch(unfold_taps, cuda::resident_grid(elements), cuda::kThreads, stream, task.geometry, fold,
               table_of(task.geometry, fold), folded, to, elements);
}

}  // namespace convoy::kernels::conv
