// Multiplies on tensor cores by mma.sync, in bf16 (m16n8k16) and tf32 (m16n8k8), on any chip from
// sm_80 on. A block computes 128 rows of C, and a warp 64 x 64 or 64 x 32 elements. cp.async fills
// a ring of pipeline stages in shared memory. Operands without 16-byte alignment are copied to the
// ring through registers.
#include <cmath>

#include "kernels/gemm/mma_sync/mma_sync.cuh"

namespace convoy::kernels::gemm {
namespace {

constexpr const char* kNames[] = {"128x128", "128x64"};

template <class C, bool a_k_contiguous, bool b_k_contiguous>
void start(const Problem& p, const Buffers& buffers, const TileOrder& order, const Epilogue& epilogue,
           cudaStream_t stream) {
  using T = typename C::T;
  const MatrixOperand<T, a_k_contiguous> a{static_cast<const T*>(buffers.a), p.lda, p.m};
  const MatrixOperand<T, b_k_contiguous> b{static_cast<const T*>(buffers.b), p.ldb, p.n};
  start_mma_sync<C>(a, b, p.k, order, epilogue, stream, buffers.members);
}

template <class C>
void start_order(const Problem& p, const Buffers& buffers, const TileOrder& order, const Epilogue& epilogue,
                 cudaStream_t stream) {
  if (p.transpose_a)
    (p.transpose_b ? start<C, false, true> : start<C, false, false>)(p, buffers, order, epilogue, stream);
  else
    (p.transpose_b ? start<C, true, true> : start<C, true, false>)(p, buffers, order, epilogue, stream);
}

template <typename T>
void start_type(const Problem& p, const Buffers& buffers, int columns, const TileOrder& order,
                const Epilogue& epilogue, cudaStream_t stream) {
  const auto suits = [](const void* data, std::int64_t pitch) {
    return pitch * std::int64_t(sizeof(T)) % 16 == 0 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  const bool vectors = columns == 128 || (suits(buffers.a, p.lda) && suits(buffers.b, p.ldb));
  if (!vectors)
    start_order<MmaTile<T, 64, false>>(p, buffers, order, epilogue, stream);
  else
    (columns == 128 ? start_order<MmaTile<T, 128, true>>
                    : start_order<MmaTile<T, 64, true>>)(p, buffers, order, epilogue, stream);
}

bool supports_mma(const Problem& p) { return p.math != Math::fp32 && device_facts().major >= 8; }

double expected_time(const Problem& p, int columns, int splits) {
  const double tiles = double(ceil_div(p.m, 128) * ceil_div(p.n, columns)) * splits;
  const double together = columns == 128 ? 2 : 3;
  const double waves = std::ceil(tiles / (device_facts().multiprocessors * together));
  const double rate = (columns == 128 ? 0.55 : 0.45) * (p.math == Math::bf16 ? 2048 : 1024);
  const double compute = waves * together * (double(p.k) / splits + 100) * 128 * columns / rate / 1.7e3;
  const double memory = p.bytes() / 3.8e6;
  const double pieces = splits == 1 ? 0 : 2.5 + 2.0 * double(partial_elements(p, splits)) * 4 / 4.0e6;
  return std::max(compute, memory) + pieces;
}

// Returns whether 16-byte copies can read the operands. If not, only the narrow tile has a kernel.
bool vector_pitches(const Problem& p) {
  const auto multiple = std::int64_t(16 / p.element_bytes());
  return p.lda % multiple == 0 && p.ldb % multiple == 0;
}

std::vector<Plan> mma_candidates(const Problem& p) {
  std::vector<Plan> plans = tile_candidates(
      Rung::mma_sync, 2, p, 256,
      [&](int tile, int splits) { return expected_time(p, kMmaColumns[tile], splits); },
      [&](int tile) { return ceil_div(p.m, 128) * ceil_div(p.n, kMmaColumns[tile]); },
      [&](int splits) { return tile_workspace(p, splits, nullptr).bytes; });
  if (!vector_pitches(p))
    std::erase_if(plans, [](const Plan& plan) { return kMmaColumns[plan.tile] == 128; });
  return plans;
}

Launch bind_mma(const Problem& p, const Plan& plan, const Buffers& buffers) {
  const int columns = kMmaColumns[plan.tile];
  const TileOrder order = tile_order(p, 128, columns, 64 / int(p.element_bytes()), plan.splits);
  const TileWorkspace workspace = tile_workspace(p, plan.splits, buffers.workspace);
  const Epilogue epilogue = epilogue_of(p, buffers);
  Epilogue first = epilogue;
  if (plan.splits > 1) first.partial = workspace.partial;
  return [=](Stream on) {
    const auto run = p.math == Math::bf16 ? start_type<__nv_bfloat16> : start_type<float>;
    run(p, buffers, columns, order, first, on.get());
    finish_tiles(p, plan, epilogue, workspace.partial, workspace.slots, buffers, on.get());
  };
}

}  // namespace

const RungEntry& mma_sync_rung() {
  static const RungEntry entry{supports_mma, mma_candidates, bind_mma, {kNames[0], kNames[1]}};
  return entry;
}

}  // namespace convoy::kernels::gemm
