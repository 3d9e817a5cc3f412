// Runs the gathered engine's products with register_tiles kernels, in plain fp32.
#include "kernels/conv2d/cuda/gather.cuh"
#include "kernels/conv2d/cuda/gathered.cuh"
#include "kernels/gemm/simple/register_tiles.cuh"

namespace convoy::kernels::conv {

void start_gathered_registers(const GatheredCall& call, cudaStream_t stream) {
  const gemm::Problem& p = call.product;
  const gemm::RegisterShape& shape = gemm::kRegisterShapes[call.plan.tile];
  const gemm::TileOrder order = gemm::tile_order(p, shape.rows, shape.columns, 16, call.plan.splits);
  const Window window = window_of(call.task.direction, call.task.geometry, call.image_pitch);
  const auto* images = static_cast<const float*>(call.images);
  const auto* other = static_cast<const float*>(call.other);
  if (call.task.direction == Direction::backward_weights)
    gemm::start_register_tiles(call.plan.tile,
                               gemm::PlaneOperand<false>{other, call.dy_pitch, p.m, call.vectors},
                               WindowPlanes<false>{images, p.n, call.vectors, window}, p.k, order,
                               call.epilogue, stream, call.members);
  else
    gemm::start_register_tiles(call.plan.tile, WindowPlanes<true>{images, p.m, call.vectors, window},
                               gemm::PlaneOperand<true>{other, p.k, p.n, call.vectors}, p.k, order,
                               call.epilogue, stream, call.members);
}

}  // namespace convoy::kernels::conv
