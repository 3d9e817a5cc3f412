// Runs the gathered engine's products with mma_sync kernels, in bf16 and tf32, on any chip from
// sm_80 on.
#include "kernels/conv2d/cuda/gather.cuh"
#include "kernels/conv2d/cuda/gathered.cuh"
#include "kernels/gemm/mma_sync/mma_sync.cuh"

namespace convoy::kernels::conv {
namespace {

template <class Tile>
void start(const GatheredCall& call, cudaStream_t stream) {
  using T = typename Tile::T;
  const gemm::Problem& p = call.product;
  const gemm::TileOrder order =
      gemm::tile_order(p, Tile::rows, Tile::columns, 64 / int(sizeof(T)), call.plan.splits);
  const Window window = window_of(call.task.direction, call.task.geometry, call.image_pitch);
  const auto* images = static_cast<const T*>(call.images);
  const auto* other = static_cast<const T*>(call.other);
  if (call.task.direction == Direction::backward_weights)
    gemm::start_mma_sync<Tile>(gemm::MatrixOperand<T, false>{other, call.dy_pitch, p.m},
                               WindowOperand<T, false>{images, p.n, window}, p.k, order, call.epilogue,
                               stream, call.members);
  else
    gemm::start_mma_sync<Tile>(WindowOperand<T, true>{images, p.m, window},
                               gemm::MatrixOperand<T, true>{other, p.k, p.n}, p.k, order, call.epilogue,
                               stream, call.members);
}

template <typename T>
void start_type(const GatheredCall& call, cudaStream_t stream) {
  const int columns = gemm::kMmaColumns[call.plan.tile];
  if (!call.vectors)
    start<gemm::MmaTile<T, 64, false>>(call, stream);
  else
    (columns == 128 ? start<gemm::MmaTile<T, 128, true>> : start<gemm::MmaTile<T, 64, true>>)(call, stream);
}

}  // namespace

void start_gathered_mma(const GatheredCall& call, cudaStream_t stream) {
  (call.task.math == gemm::Math::bf16 ? start_type<__nv_bfloat16> : start_type<float>)(call, stream);
}

}  // namespace convoy::kernels::conv
