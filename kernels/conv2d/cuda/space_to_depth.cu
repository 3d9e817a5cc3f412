#include <algorithm>

#include "kernels/conv2d/cuda/space_to_depth.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/device/gpu_model.h"
#include "kernels/gemm/common/pipeline.cuh"

namespace convoy::kernels::conv {
namespace {

using cuda::ceil_div;

// For each channel of a folded pixel, its source in x: row, column and channel relative to the
// folded pixel's first pixel. A negative row marks a channel that is always zero.
struct FoldTable {
  std::int8_t row[kMostFolded], column[kMostFolded];
  std::int16_t channel[kMostFolded];
};

FoldTable table_of(const Geometry& g, const SpaceToDepth& fold) {
  FoldTable table{};
  for (int i = 0; i < kMostFolded; ++i) {
    const int a = i / (fold.columns * g.c), b = i / g.c % fold.columns;
    table.row[i] = std::int8_t(a < fold.rows ? a : -1);
    table.column[i] = std::int8_t(b);
    table.channel[i] = std::int16_t(i % g.c);
  }
  return table;
}

// A FoldTable as offsets into the block's shared memory. -1 stands for a channel that is zero.
struct FoldOffsets {
  alignas(16) std::int16_t at[kMostFolded];
};

// Divides the folded images among blocks. A block writes `lines` lines of folded pixels. A long
// line is divided into `segments` segments of `segment` pixels, and a block writes one of them. A
// block first copies the rows of x that it needs to shared memory, `pitch` elements apart.
struct FoldGrid {
  int lines, segment, segments, pitch;
  // packs: the number of 16-byte packs in a folded pixel. threads: the number of threads of a
  // block, which is a multiple of `packs`.
  int packs, threads;
  // by_pixels divides by the number of pixels of a segment, by_packs by the number of 16-byte packs
  // in `pitch`, by_rows by the rows of x in a folded pixel, and by_height by the lines of an image.
  cuda::Divider by_pixels, by_packs, by_rows, by_height;

  std::size_t elements(const SpaceToDepth& fold) const { return std::size_t(lines) * fold.rows * pitch; }
};

template <typename T>
FoldGrid fold_grid(const Geometry& g, const SpaceToDepth& fold) {
  constexpr int V = cuda::kPackWidth<T>;
  // Less than the 48 KiB of shared memory that a kernel may use without asking for more.
  constexpr std::size_t kMostBytes = 40 << 10;
  constexpr std::int64_t kPacks = 2048;  // 16-byte packs that a block writes
  FoldGrid grid{};
  grid.packs = fold.channels / V;
  grid.threads = cuda::kThreads / grid.packs * grid.packs;
  grid.lines = 1;
  const auto cut = [&](int segment) {
    grid.segment = segment;
    grid.pitch = int(ceil_div(((segment - 1) * g.stride[1] + fold.columns) * g.c + V - 1, V)) * V;
  };
  cut(fold.width);
  while (grid.segment > 1 && grid.elements(fold) * sizeof(T) > kMostBytes) cut((grid.segment + 1) / 2);
  grid.segments = int(ceil_div(fold.width, grid.segment));
  if (grid.segments == 1) {
    const auto fit = std::int64_t(kMostBytes / (grid.elements(fold) * sizeof(T)));
    const std::int64_t wanted = kPacks / (std::int64_t{fold.width} * grid.packs);
    const std::int64_t share = std::int64_t{g.n} * fold.height / (2 * cuda::kMultiprocessors);
    grid.lines = int(std::max<std::int64_t>(std::min({fit, wanted, share}), 1));
  }
  grid.by_pixels = cuda::Divider(grid.segment);
  grid.by_packs = cuda::Divider(grid.pitch / V);
  grid.by_rows = cuda::Divider(fold.rows);
  grid.by_height = cuda::Divider(fold.height);
  return grid;
}

FoldOffsets offsets_of(const Geometry& g, const FoldTable& table, const FoldGrid& grid) {
  FoldOffsets offsets{};
  for (int i = 0; i < kMostFolded; ++i)
    offsets.at[i] = std::int16_t(
        table.row[i] < 0 ? -1 : table.row[i] * grid.pitch + table.column[i] * g.c + table.channel[i]);
  return offsets;
}

// Writes folded pixels, 16 bytes at a time. A thread always writes the same channels, so it loads
// their offsets only once.
template <typename T>
__global__ void fold_pixels(const __grid_constant__ Geometry g, const __grid_constant__ SpaceToDepth fold,
                            const __grid_constant__ FoldOffsets offsets,
                            const __grid_constant__ FoldGrid grid, const T* x, T* to,
                            std::int64_t pixel_elements, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, x, to);
  if (blockIdx.x == 0)
    for (int i = int(threadIdx.x); i < fold.window - fold.across * fold.channels; i += int(blockDim.x))
      to[pixel_elements + i] = T(0.0f);
  constexpr int V = cuda::kPackWidth<T>;
  extern __shared__ __align__(16) unsigned char shared[];
  T* const rows = reinterpret_cast<T*>(shared);
  const int all_lines = g.n * fold.height, line0 = int(blockIdx.x) / grid.segments * grid.lines;
  const int j0 = int(blockIdx.x) % grid.segments * grid.segment;
  const int begin = (j0 * g.stride[1] - g.padding[1]) * g.c, lead = ((begin % V) + V) % V, length = g.w * g.c;
  for (int i = int(threadIdx.x); i * V < grid.lines * fold.rows * grid.pitch; i += int(blockDim.x)) {
    const int row = int(grid.by_packs(std::uint32_t(i))), of_block = int(grid.by_rows(std::uint32_t(row)));
    const int line = line0 + of_block, n = int(grid.by_height(std::uint32_t(line)));
    const int h = (line - n * fold.height) * g.stride[0] - g.padding[0] + row - of_block * fold.rows;
    const int e = begin - lead + i * V - row * grid.pitch;
    const bool there = line < all_lines && h >= 0 && h < g.h;
    const T* const from = x + (std::int64_t{n} * g.h + h) * length;
    if (length % V == 0) {  // so no 16 bytes cross the end of a line of x
      const bool inside = there && e >= 0 && e < length;
      gemm::copy_async<16>(rows + i * V, inside ? from + e : x, inside ? 16 : 0);
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v)
        rows[i * V + v] = there && e + v >= 0 && e + v < length ? from[e + v] : T(0.0f);
    }
  }
  gemm::copies_commit();
  const int first = int(threadIdx.x) % grid.packs * V;
  const auto offset = cuda::load_pack<V>(offsets.at + first);
  gemm::copies_wait<0>();
  __syncthreads();
  const int pixels = grid.lines * grid.segment, stride = int(blockDim.x) / grid.packs;
  for (int pixel = int(threadIdx.x) / grid.packs; pixel < pixels; pixel += stride) {
    const int line = int(grid.by_pixels(std::uint32_t(pixel))), j = pixel - line * grid.segment;
    if (line0 + line >= all_lines || j0 + j >= fold.width) continue;
    const T* const from = rows + line * fold.rows * grid.pitch + j * g.stride[1] * g.c + lead;
    cuda::Pack<T, V> pack;
#pragma unroll
    for (int v = 0; v < V; ++v) pack.value[v] = offset.value[v] < 0 ? T(0.0f) : from[offset.value[v]];
    cuda::store_pack(to + (std::int64_t{line0 + line} * fold.width + j0 + j) * fold.channels + first, pack);
  }
}

// Returns the index in the original filters of an element of the folded filters, or -1 if the
// folded element is zero.
__device__ std::int64_t unfolded(const Geometry& g, const SpaceToDepth& fold, const FoldTable& table,
                                 int element) {
  const int in_window = element % fold.window, channel = in_window % fold.channels,
            j = in_window / fold.channels, i = element / fold.window % fold.down,
            k = element / fold.window / fold.down;
  const int a = table.row[channel], r = i * fold.rows + a, s = j * fold.columns + table.column[channel];
  if (a < 0 || r >= g.r || s >= g.s) return -1;
  return ((std::int64_t{k} * g.r + r) * g.s + s) * g.c + table.channel[channel];
}

template <typename T>
__global__ void fold_taps(const __grid_constant__ Geometry g, const __grid_constant__ SpaceToDepth fold,
                          const __grid_constant__ FoldTable table, const T* filters, T* to, int elements,
                          std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, filters, to);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
    const std::int64_t from = unfolded(g, fold, table, i);
    to[i] = from < 0 ? T(0.0f) : filters[from];
  }
}

__global__ void unfold_taps(const __grid_constant__ Geometry g, const __grid_constant__ SpaceToDepth fold,
                            const __grid_constant__ FoldTable table, const float* folded, float* to,
                            int elements, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, folded, to);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
    const std::int64_t at = unfolded(g, fold, table, i);
    if (at >= 0) to[at] = folded[i];
  }
}

SpaceToDepth fold_with(const Geometry& g, int rows, int multiple, int depth) {
  SpaceToDepth fold;
  fold.rows = rows;
  fold.columns = g.stride[1];
  fold.channels = int(ceil_div(std::int64_t{rows} * fold.columns * g.c, multiple)) * multiple;
  fold.down = int(ceil_div(g.r, rows));
  fold.across = int(ceil_div(g.s, fold.columns));
  fold.window = int(ceil_div(fold.across * fold.channels, depth)) * depth;
  fold.height = g.p + fold.down - 1;
  fold.width = g.q + fold.across - 1;
  return fold;
}

// Returns the expected microseconds for folding the images and for the product with padded extents.
double cost(const Task& task, const SpaceToDepth& fold) {
  const Geometry& g = task.geometry;
  const double bytes = 2.2 * double(fold.pixel_elements(g)) * double(bytes_of(task.type()));
  const double k = double(fold.down) * double(fold.window);
  return bytes / kReferenceGpu.planned_bytes +
         2 * double(g.y_pixels()) * k * double(ceil_div(g.k, 64) * 64) / 350e6;
}

int multiple_of(const Task& task) { return int(16 / bytes_of(task.type())); }

}  // namespace

bool suits_space_to_depth(const Task& task) {
  const Geometry& g = task.geometry;
  if (g.groups != 1 || g.dilation[0] != 1 || g.dilation[1] != 1) return false;
  if (task.direction == Direction::backward_data || g.c >= 64 || g.stride[0] > 8 || g.stride[1] > 8)
    return false;
  const SpaceToDepth fold = fold_with(g, g.stride[0], multiple_of(task), 1);
  const std::int64_t packs = std::int64_t(fold.image_elements(g)) / multiple_of(task);
  return fold.channels <= kMostFolded && fold.down <= 120 && packs < std::int64_t{1} << 31;
}

SpaceToDepth space_to_depth_of(const Task& task, int depth) {
  const Geometry& g = task.geometry;
  const SpaceToDepth by_stride = fold_with(g, g.stride[0], multiple_of(task), depth),
                     whole = fold_with(g, g.r, multiple_of(task), depth);
  const std::int64_t packs = std::int64_t(whole.image_elements(g)) / multiple_of(task);
  if (whole.channels > kMostFolded || g.r > 120 || packs >= std::int64_t{1} << 31) return by_stride;
  return cost(task, whole) < cost(task, by_stride) ? whole : by_stride;
}

void fold_images(const Task& task, const SpaceToDepth& fold, const void* images, void* to, Stream stream,
                 MemberLayout members) {
  const auto start = [&]<typename T>(T) {
    const Geometry& g = task.geometry;
    const FoldGrid grid = fold_grid<T>(g, fold);
    const auto blocks =
        std::max<std::int64_t>(ceil_div(std::int64_t{g.n} * fold.height, grid.lines) * grid.segments, 1);
    cuda::launch(fold_pixels<T>, unsigned(blocks), grid.threads, grid.elements(fold) * sizeof(T), stream,
                 members, g, fold, offsets_of(g, table_of(g, fold), grid), grid,
                 static_cast<const T*>(images), static_cast<T*>(to), fold.pixel_elements(g));
  };
  task.type() == DType::bf16 ? start(cuda::bf16{}) : start(float{});
}

void fold_filters(const Task& task, const SpaceToDepth& fold, const void* filters, void* to, Stream stream,
                  MemberLayout members) {
  const auto start = [&]<typename T>(T) {
    const int elements = int(fold.filter_elements(task.geometry));
    cuda::launch(fold_taps<T>, cuda::resident_grid(elements), cuda::kThreads, stream, members, task.geometry,
                 fold, table_of(task.geometry, fold), static_cast<const T*>(filters), static_cast<T*>(to),
                 elements);
  };
  task.type() == DType::bf16 ? start(cuda::bf16{}) : start(float{});
}

void unfold_gradient(const Task& task, const SpaceToDepth& fold, const float* folded, float* to,
                     Stream stream, MemberLayout members) {
  const int elements = int(fold.filter_elements(task.geometry));
  cuda::launch(unfold_taps, cuda::resident_grid(elements), cuda::kThreads, stream, members, task.geometry,
               fold, table_of(task.geometry, fold), folded, to, elements);
}

}  // namespace convoy::kernels::conv
