// Reorders between row_major and channels_last, and converts between f32 and bf16, on the device.
// If the layouts differ, every sample is transposed through tiles in shared memory. Otherwise it is
// copied.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/reorder/reorder.h"

namespace convoy::kernels::cuda {
namespace {

constexpr int kTile = 32, kTileRows = 8;

// Transposes the last two extents: to[n, column, row] = from[n, row, column].
__global__ void transpose(DType from_type, const void* from, DType to_type, void* to, std::int64_t rows,
                          std::int64_t columns, unsigned column_tiles, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, from, to);
  __shared__ float tile[kTile][kTile + 1];
  const int tx = static_cast<int>(threadIdx.x) % kTile, ty = static_cast<int>(threadIdx.x) / kTile;
  const unsigned sample = blockIdx.x / column_tiles;
  const std::int64_t column = std::int64_t{blockIdx.x - sample * column_tiles} * kTile;
  const std::int64_t row = std::int64_t{blockIdx.y} * kTile, base = sample * rows * columns;
  for (int i = ty; i < kTile; i += kTileRows)
    if (row + i < rows && column + tx < columns)
      tile[i][tx] = load_element(from_type, from, base + (row + i) * columns + column + tx);
  __syncthreads();
  for (int i = ty; i < kTile; i += kTileRows)
    if (column + i < columns && row + tx < rows)
      store_element(to_type, to, base + (column + i) * rows + row + tx, tile[tx][i]);
}

__global__ void convert(DType from_type, const void* from, DType to_type, void* to, std::int64_t elements,
                        std::ptrdiff_t member_stride) {
  move_to_member(member_stride, from, to);
  const std::int64_t turn = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += turn)
    store_element(to_type, to, i, load_element(from_type, from, i));
}

void require_known(const TensorDesc& desc) {
  if (desc.layout != Layout::row_major) {
    TensorDesc copy = desc;
    require_layout("reorder_forward", copy, Layout::channels_last);
  }
}

}  // namespace

Kernel reorder_forward(const ReorderProblem&, KernelRequest& request) {
  const char* operation = "reorder_forward";
  const auto [x, y] = reorder_ends(request);
  require_known(x);
  require_known(y);
  common_dtype(operation, {&x});
  common_dtype(operation, {&y});
  if (x.layout == y.layout || x.shape.rank() != 4)
    return device_kernel([x = x, y = y](const BoundOperands& b, Stream stream) {
      const std::int64_t elements = x.shape.elements();
      launch(convert, grid_for(elements), kThreads, stream, b.members, x.dtype, b.inputs[0], y.dtype,
             b.outputs[0], elements);
    });
  const std::int64_t pixels = x.shape[2] * x.shape[3], channels = x.shape[1], samples = x.shape[0];
  const bool from_rows = x.layout == Layout::row_major;
  const std::int64_t rows = from_rows ? channels : pixels, columns = from_rows ? pixels : channels;
  const std::int64_t tiles = ceil_div(columns, kTile);
  require_below_2g(operation, samples * tiles);
  const dim3 grid(static_cast<unsigned>(samples * tiles), static_cast<unsigned>(ceil_div(rows, kTile)));
  if (grid.y > 65535) require_below_2g(operation, std::int64_t{grid.y} << 31);
  return device_kernel([=, from = x.dtype, to = y.dtype](const BoundOperands& b, Stream stream) {
    launch(transpose, grid, kTile * kTileRows, stream, b.members, from, b.inputs[0], to, b.outputs[0], rows,
           columns, static_cast<unsigned>(tiles));
  });
}

}  // namespace convoy::kernels::cuda
