// Adds tensors on the device. One launch takes at most eight tensors. It may also compute the sums
// of the result that batch norm needs.
#include "kernels/add/add.h"
#include "kernels/batch_norm/cuda_statistics.cuh"

namespace convoy::kernels::cuda {
namespace {

constexpr int kMost = 8;  // the most tensors that one launch adds

// Loads V elements of each operand, adds them and stores the sums. This struct is a Source
// (cuda_statistics.cuh), so the kernel statistics() can compute batch norm's sums of the result in
// the same pass.
template <typename T, int V>
struct Sum {
  using Element = T;
  static constexpr int kWidth = V, kRows = 2;
  static constexpr bool kWrites = true;
  struct Loaded {
    // Both packs are loaded before the addition, so that the two loads overlap.
    Pack<T, V> first, second;
  };
  const void* of[kMost];
  int count;
  T* y;

  // The same sum in the memory of another member (MemberLayout, kernels/device/kernel.h). Refers to
  // the Sum of member 0 and adds an offset to its pointers. A copy with changed pointers in `of`
  // would lie in slow local memory, because `of` is indexed at run time.
  struct Moved;
  __device__ __forceinline__ Moved moved(std::ptrdiff_t member_stride) const {
    return {*this, member_stride * static_cast<std::ptrdiff_t>(blockIdx.z) / std::ptrdiff_t{sizeof(T)}};
  }
};

template <typename T, int V>
struct Sum<T, V>::Moved {
  const Sum& first;
  std::ptrdiff_t offset;  // elements from member 0's memory to this member's memory

  __device__ __forceinline__ Pack<T, V> input(int index, std::int64_t at) const {
    return load_pack<V>(static_cast<const T*>(first.of[index]) + offset + at);
  }
  __device__ __forceinline__ Loaded load(std::int64_t at) const { return {input(0, at), input(1, at)}; }
  __device__ __forceinline__ Pack<T, V> pack(const Loaded& loaded, std::int64_t at) const {
    float sum[V], value[V];
    unpack(loaded.first, sum);
    unpack(loaded.second, value);
    for (int k = 0; k < V; ++k) sum[k] += value[k];
#pragma unroll 1  // More than two tensors are rare, and unrolling would cost registers.
    for (int index = 2; index < first.count; ++index) {
      unpack(input(index, at), value);
      for (int k = 0; k < V; ++k) sum[k] += value[k];
    }
    const Pack<T, V> stored = pack_of<T>(sum);
    store_pack(first.y + offset + at, stored);
    return stored;
  }
};

template <typename Source>
__global__ void add(const __grid_constant__ Source of_first, std::int64_t packs,
                    std::ptrdiff_t member_stride) {
  const auto source = of_first.moved(member_stride);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += stride)
    source.pack(source.load(i * Source::kWidth), i * Source::kWidth);
}

}  // namespace

Kernel add_forward(const AddProblem& problem, KernelRequest& request) {
  const char* operation = "add_forward";
  require_counts(operation, request, std::max<std::size_t>(2, request.inputs.size()), 1 + problem.statistics);
  if (request.inputs[0].layout == Layout::any) require_activation_layout(operation, request.inputs[0]);
  const TensorDesc& first = request.inputs[0];
  std::vector<const TensorDesc*> all{&first, &request.outputs[0]};
  for (TensorDesc& input : request.inputs) {
    match_layout(operation, input, first);
    require_shape(operation, "an input", input, request.outputs[0].shape);
    all.push_back(&input);
  }
  match_layout(operation, request.outputs[0], first);
  const DType type = common_dtype(operation, all);
  const std::int64_t elements = first.shape.elements();
  ColumnGrid grid{};
  if (problem.statistics) {
    const ImageExtents e = image_extents(first.shape);
    require_layout(operation, request.outputs[1], Layout::row_major);
    require_dtype(operation, "sums", request.outputs[1], DType::f64);
    require_shape(operation, "sums", request.outputs[1], {2, e.c});
    grid = statistics_grid(e, type, Sum<float, 1>::kRows);
  }
  const auto body = [=](const BoundOperands& operands, unsigned* tickets, Stream stream) {
    with_packing(type, {problem.statistics ? grid.columns : elements}, [&](auto packing) {
      using P = decltype(packing);
      using Source = Sum<typename P::Type, P::kWidth>;
      // A launch adds at most eight tensors. Each later launch takes the sum so far as its first
      // tensor.
      for (std::size_t next = 0; next < operands.inputs.size();) {
        Source source{{}, 0, operands.out<typename P::Type>(0)};
        if (next > 0) source.of[source.count++] = operands.outputs[0];
        while (source.count < kMost && next < operands.inputs.size())
          source.of[source.count++] = operands.inputs[next++];
        if (problem.statistics && next == operands.inputs.size()) {
          launch(statistics<Source>, grid.blocks(), kReduceThreads, stream, operands.members, source,
                 operands.control(), grid, operands.scratch<StatisticsSum<typename P::Type>>(), tickets,
                 operands.out<double>(1));
        } else {
          const std::int64_t packs = elements / P::kWidth;
          launch(add<Source>, grid_for(packs), kThreads, stream, operands.members, source, packs);
        }
      }
    });
  };
  if (problem.statistics)
    return ticketed_kernel(body, grid.tickets(), {{0, 0}}, statistics_bytes(grid, type));
  return device_kernel(
      [body](const BoundOperands& operands, Stream stream) { body(operands, nullptr, stream); }, {{0, 0}});
}

}  // namespace convoy::kernels::cuda
