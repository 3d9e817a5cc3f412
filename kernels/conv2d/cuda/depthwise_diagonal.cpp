// Chooses tiles and makes tensor maps for depthwise convolutions on Hopper's tensor cores
// (depthwise_diagonal.h).
#include "kernels/conv2d/cuda/depthwise_diagonal.h"

#include "kernels/device/cuda_kernel.h"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::conv::diagonal {
namespace {

// Estimates the cycles that a multiprocessor takes for all tiles of a slab: for products, for
// moving bytes between L2 and shared memory, and for barriers.
template <class F>
double cost_of(const Call& call) {
  const double products_of_set = F::kRows * F::kColumns * F::kFilter * (F::kInputColumns + 1) / 2;
  const double products = 2 * cuda::ceil_div(call.tiling.down * call.sets(), 2) * kGroups * products_of_set *
                          1.6 / (call.transposed ? 2 : 1);
  const double bytes = (call.input.bytes() + call.output.bytes()) / 24.0;
  return call.tiling.tiles() * (std::max(products, bytes) + 0.3 * std::min(products, bytes) + 600);
}

template <class F>
void choose_tile(Call& call) {
  constexpr int kMostPatches = 256, kMostBox = 256;
  choose_tiling(call, kMostPatches, F::kRows, F::kColumns, [](Call& tried) -> std::optional<double> {
    const DepthwiseTiling& tiling = tried.tiling;
    const auto box_of = [&](int rows, int columns) {
      const int pitch = columns * tiling.images;
      return Box{rows, columns, pitch, rows * pitch};
    };
    int columns = (tiling.across - 1) * F::kColumnStep + F::kInputColumns;
    while (columns * tiling.images % 8 != 0) ++columns;
    tried.input = box_of((tiling.down - 1) * F::kRowStep + F::kInputRows, columns);
    tried.output = box_of(tiling.down * F::kRows, tiling.across * F::kColumns);
    for (const Box& box : {tried.input, tried.output})
      if (box.rows > kMostBox || box.columns > kMostBox) return {};
    if (tried.shared_bytes() > kMostShared) return {};
    return cost_of<F>(tried);
  });
}
template <int filter>
void choose_tile_for(Call& call) {
  if (call.transposed)
    choose_tile<Form<filter, 2, true>>(call);
  else if (call.stride == 2)
    choose_tile<Form<filter, 2, false>>(call);
  else
    choose_tile<Form<filter, 1, false>>(call);
}

}  // namespace

bool supports(const Task& task) {
  const Geometry& g = task.geometry;
  const bool transposed = task.direction == Direction::backward_data && g.stride[0] == 2;
  const auto has_parity = [&](int padding) { return padding % 2 == (g.r - 1) / 2 % 2; };
  return gemm::device_facts().major == 9 && task.type() == DType::bf16 && g.c % 8 == 0 &&
         (!transposed || (has_parity(g.padding[0]) && has_parity(g.padding[1])));
}

bool prefers_clusters(const Task& task) {
  constexpr double kLargeBytes = 200e6;
  return task.geometry.r == 3 && task.bytes() >= kLargeBytes;
}

Call make_call(const Task& task, bool clusters) {
  constexpr int kMostBlocks = 8;  // of a cluster, on every device
  Call call{{depthwise_shape(task)}};
  call.slabs = int(cuda::ceil_div(call.channels, kSlab));
  call.cluster = clusters ? std::min(kMostBlocks, call.slabs) : 1;
  while (call.slabs % call.cluster != 0) --call.cluster;
  (call.filter == 3 ? choose_tile_for<3> : call.filter == 5 ? choose_tile_for<5> : choose_tile_for<7>)(call);
  call.across = cuda::Divider(call.tiling.across);
  // Take the reference GPU's clusters, so that the order of sums is the same on every GPU.
  const int clusters_at_once = kReferenceGpu.resident_clusters[call.cluster - 1];
  call.row_blocks = even_blocks(call.tiling.tiles(), clusters_at_once * call.cluster / call.slabs);
  return call;
}

void set_maps(Call& call, const MapMaker& maps) {
  const auto map = [&](const void* data, int height, int width, const Box& box) {
    const std::int64_t channels = call.channels;
    return maps.tiled(
        DType::bf16, data, {channels, width, call.samples, height},
        {channels, channels * width * height, channels * width},
        {unsigned(kSlab), unsigned(box.columns), unsigned(call.tiling.images), unsigned(box.rows)},
        Swizzle::bytes_64);
  };
  call.input_map = map(call.operands.input, call.input_h, call.input_w, call.input);
  call.output_map = map(call.reads_dy() ? call.operands.dy : call.operands.output, call.output_h,
                        call.output_w, call.output);
}

}  // namespace convoy::kernels::conv::diagonal
