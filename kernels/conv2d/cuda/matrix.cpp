// The matrix engine (engines.h): runs a 1x1 convolution without stride and padding as a plain
// matrix product, because a row of the im2col matrix is then simply a pixel.
#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {
namespace {

bool supports_matrix(const Task& task) {
  const Geometry& g = task.geometry;
  return g.groups == 1 && g.taps() == 1 && g.stride[0] == 1 && g.stride[1] == 1 && g.padding[0] == 0 &&
         g.padding[1] == 0;
}

std::vector<Plan> matrix_candidates(const Task& task) {
  const gemm::Problem product = task.product();
  const gemm::Plan best = gemm::plan(product);
  std::vector<Plan> plans;
  const auto add = [&](gemm::Rung rung) {
    if (!gemm::supports(rung, product)) return;
    for (const gemm::Plan& plan : gemm::candidates(rung, product))
      plans.push_back({Engine::matrix, plan, plan.workspace_bytes});
  };
  add(best.rung);
  for (const gemm::Rung rung : {gemm::Rung::wgmma, gemm::Rung::mma_sync})
    if (rung != best.rung) add(rung);
  return plans;
}

Launch bind_matrix(const Task& task, const Plan& plan, const Buffers& b) {
  gemm::Buffers buffers;
  const bool back = task.direction == Direction::backward_weights;
  buffers.a = back ? b.dy : b.images;
  buffers.b = back ? b.images : b.weights;
  buffers.c = b.out;
  buffers.bias = b.bias;
  buffers.workspace = b.workspace;
  buffers.members = b.members;
  return gemm::bind(task.product(), plan.product, buffers);
}

}  // namespace

const EngineEntry& matrix_engine() {
  static const EngineEntry entry{supports_matrix, matrix_candidates, bind_matrix};
  return entry;
}

}  // namespace convoy::kernels::conv
