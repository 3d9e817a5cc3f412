// Host side of the wgmma rung's tiles for tf32 operands whose k is not contiguous: which tile and how many pieces of k,
// the tensor maps, the launch.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/device/cuda_tensor_map.h"
#include "kernels/gemm/pipeline.cuh"
#include "kernels/gemm/sm90_mn_major.h"

namespace convoy::kernels::gemm {
namespace {

// Rows that the copy engine sees as one, so that they start at multiples of 16 bytes.
int rows_together(const Problem& p) { return int(4 / std::gcd(std::gcd(p.lda, p.ldb), std::int64_t{4})); }

struct Workspace {
  float *partial, *slots;
  std::size_t bytes;
};
Workspace carve(const Problem& p, int splits, void* base) {
  Carver carver(base);
  auto* partial = carver.take<float>(splits == 1 ? 0 : partial_elements(p, splits));
  auto* slots = carver.take<float>(p.column_sums ? slot_elements(p.n, kSumSlots) : 0);
  return {partial, slots, carver.used()};
}

MnMajorOperand operand_of(const void* data, std::int64_t extent, std::int64_t k, std::int64_t pitch,
                          int together) {
  const std::int64_t columns = (together - 1) * pitch + extent;
  return {tiled_map(DType::f32, data, {columns, k / together}, {together * pitch},
                    {32, 32u / unsigned(together)}),
          int(pitch)};
}

}  // namespace

bool reads_mn_major(const Problem& p) {
  const std::int64_t together = rows_together(p);
  return device_facts().major == 9 && p.math == Math::tf32 && p.transpose_a && !p.transpose_b &&
         p.k % together == 0 && together * std::max(p.lda, p.ldb) < std::int64_t{1} << 31;
}

// A stage takes as long as its way through shared memory: into it, y out and in again, x out, and y once more for every 64
// rows of x.
double mn_major_expected_time(const Problem& problem, int tile_index, int splits, double bytes,
                              bool in_pieces) {
  const Sm90Tile& tile = kMnMajorTiles[tile_index];
  const Schedule schedule = sm90_schedule(problem, tile, splits);
  const double waves = std::ceil(double(schedule.pieces()) / double(device_facts().multiprocessors));
  const double x = std::max(tile.rows, tile.columns), y = std::min(tile.rows, tile.columns);
  const double stage = 1.1 * (2 * x + 3 * y + x * y / 64) + 60;
  const double piece = std::ceil(double(schedule.k_blocks) / splits) * stage + 1500;
  return with_memory(problem, tile, schedule, (waves * piece + 1500) / kSm90Clock, bytes, in_pieces);
}

std::vector<ScoredPlan> mn_major_candidates(const Problem& problem) {
  std::vector<ScoredPlan> scored;
  if (!reads_mn_major(problem)) return scored;
  const int workers = device_facts().multiprocessors;
  for (int tile = 0; tile < int(std::size(kMnMajorTiles)); ++tile) {
    const Schedule whole = sm90_schedule(problem, kMnMajorTiles[tile], 1);
    std::vector<ScoredPlan> own;
    for (int splits = 1; splits <= std::min(whole.k_blocks, 4 * workers); ++splits) {
      if (splits > 1 && (whole.pieces() * splits > 8 * workers || whole.k_blocks / splits < 4)) break;
      own.push_back({{Rung::wgmma, kFirstMnMajorTile + tile, splits, carve(problem, splits, nullptr).bytes},
                     mn_major_expected_time(problem, tile, splits, problem.bytes(), splits > 1)});
    }
    std::stable_sort(own.begin(), own.end(), [](auto& a, auto& b) { return a.time < b.time; });
    own.resize(std::min<std::size_t>(own.size(), 3));
    scored.insert(scored.end(), own.begin(), own.end());
  }
  return scored;
}

Launch bind_mn_major(const Problem& problem, const Plan& plan, const Buffers& buffers) {
  const Workspace workspace = carve(problem, plan.splits, buffers.workspace);
  const Epilogue epilogue = epilogue_of(problem, buffers);
  MnMajorCall call{};
  call.tile = plan.tile - kFirstMnMajorTile;
  call.schedule = sm90_schedule(problem, kMnMajorTiles[call.tile], plan.splits);
  call.blocks = std::min(call.schedule.pieces(), device_facts().multiprocessors);
  call.together = rows_together(problem);
  call.a = operand_of(buffers.a, problem.m, problem.k, problem.lda, call.together);
  call.b = operand_of(buffers.b, problem.n, problem.k, problem.ldb, call.together);
  call.result = {epilogue, int(problem.m), int(problem.n), partial_pitch(problem)};
  if (plan.splits > 1) call.result.epilogue.partial = workspace.partial;
  return [=](Stream on) {
    sm90_launch_mn_major(call, as_stream(on));
    finish_tiles(problem, plan, epilogue, workspace.partial, workspace.slots, buffers, as_stream(on));
  };
}

}  // namespace convoy::kernels::gemm
