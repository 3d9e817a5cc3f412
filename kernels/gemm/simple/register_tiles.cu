// Multiplies in fp32 without tensor cores. A block computes a tile of C, a warp computes 64 rows of
// the tile, and a thread computes 8 rows by 8 or 16 columns. The arithmetic overlaps copies of the
// next stage and loads of the next operands into registers.
#include <cmath>

#include "kernels/gemm/simple/register_tiles.cuh"

namespace convoy::kernels::gemm {
namespace {

template <bool a_k_contiguous, bool b_k_contiguous>
void start(const Problem& p, int tile, const Buffers& buffers, const TileOrder& order,
           const Epilogue& epilogue, cudaStream_t stream) {
  const auto operand = []<bool k_contiguous>(std::bool_constant<k_contiguous>, const void* data,
                                             std::int64_t pitch, std::int64_t extent) {
    const bool vectors = pitch % 4 == 0 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
    return PlaneOperand<k_contiguous>{static_cast<const float*>(data), pitch, extent, vectors};
  };
  start_register_tiles(tile, operand(std::bool_constant<a_k_contiguous>{}, buffers.a, p.lda, p.m),
                       operand(std::bool_constant<b_k_contiguous>{}, buffers.b, p.ldb, p.n), p.k, order,
                       epilogue, stream, buffers.members);
}

void start_order(const Problem& p, int tile, const Buffers& buffers, const TileOrder& order,
                 const Epilogue& epilogue, cudaStream_t stream) {
  if (p.transpose_a)
    (p.transpose_b ? start<false, true> : start<false, false>)(p, tile, buffers, order, epilogue, stream);
  else
    (p.transpose_b ? start<true, true> : start<true, false>)(p, tile, buffers, order, epilogue, stream);
}

bool supports_registers(const Problem& p) { return p.math == Math::fp32; }

// Returns the expected microseconds. Blocks run in waves. A wave takes the time of all
// multiply-adds of a multiprocessor's blocks, at 128 per cycle.
double expected_time(const Problem& p, const RegisterShape& shape, int splits) {
  const double tiles = double(ceil_div(p.m, shape.rows) * ceil_div(p.n, shape.columns)) * splits;
  const double size = double(shape.rows) * shape.columns;
  const double together = std::max(1.0, 2.0 * 128 * 128 / size);
  const double waves = std::ceil(tiles / (device_facts().multiprocessors * together));
  const double depth = double(p.k) / splits + 60;
  const double rate = size >= 128 * 128 ? 0.92 : size >= 128 * 64 ? 0.88 : 0.75;
  const double compute = waves * together * depth * size / 128 / rate / 1.85e3;
  const double memory = p.bytes() / 4.0e6;
  const double pieces = splits == 1 ? 0 : 2.5 + 2.0 * double(partial_elements(p, splits)) * 4 / 4.0e6;
  return std::max(compute, memory) + pieces;
}

std::vector<Plan> register_candidates(const Problem& p) {
  return tile_candidates(
      Rung::register_tiles, int(std::size(kRegisterShapes)), p, 64,
      [&](int tile, int splits) { return expected_time(p, kRegisterShapes[tile], splits); },
      [&](int tile) {
        return ceil_div(p.m, kRegisterShapes[tile].rows) * ceil_div(p.n, kRegisterShapes[tile].columns);
      },
      [&](int splits) { return tile_workspace(p, splits, nullptr).bytes; });
}

Launch bind_registers(const Problem& p, const Plan& plan, const Buffers& buffers) {
  const RegisterShape& shape = kRegisterShapes[plan.tile];
  const TileOrder order = tile_order(p, shape.rows, shape.columns, 16, plan.splits);
  const TileWorkspace workspace = tile_workspace(p, plan.splits, buffers.workspace);
  const Epilogue epilogue = epilogue_of(p, buffers);
  Epilogue first = epilogue;
  if (plan.splits > 1) first.partial = workspace.partial;
  return [=](Stream on) {
    const cudaStream_t stream = on.get();
    start_order(p, plan.tile, buffers, order, first, stream);
    finish_tiles(p, plan, epilogue, workspace.partial, workspace.slots, buffers, stream);
  };
}

}  // namespace

const RungEntry& register_tiles_rung() {
  static const RungEntry entry = [] {
    RungEntry made{supports_registers, register_candidates, bind_registers, {}};
    for (const auto& shape : kRegisterShapes) made.tiles.push_back(shape.name);
    return made;
  }();
  return entry;
}

}  // namespace convoy::kernels::gemm
