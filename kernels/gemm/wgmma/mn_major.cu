// Host code of the wgmma tiles for tf32 operands whose k is not contiguous (sm90_mn_major.cuh):
// chooses the tile and the number of splits, makes tensor maps, and launches the kernels.
#include <algorithm>
#include <cmath>

#include "kernels/device/cuda_tensor_map.h"
#include "kernels/gemm/common/pipeline.cuh"
#include "kernels/gemm/wgmma/sm90_mn_major.h"

namespace convoy::kernels::gemm {

// Returns the expected microseconds. The traffic in shared memory limits a pipeline stage. x and y
// are the longer and the shorter side of the tile (sm90_mn_major.cuh). The stage is written once, y
// is read and written back transposed, x is read once, and y is read again for every 64 rows of x.
double mn_major_expected_time(const Problem& problem, int tile_index, int splits, double bytes,
                              bool has_partials) {
  const Sm90Tile& tile = kMnMajorTiles[tile_index];
  const TileScheduler schedule = sm90_schedule(problem, tile, splits);
  const double waves = std::ceil(double(schedule.work_items()) / double(device_facts().multiprocessors));
  const double x = std::max(tile.rows, tile.columns), y = std::min(tile.rows, tile.columns);
  const double stage = 1.1 * (2 * x + 3 * y + x * y / 64) + 60;
  const double item = std::ceil(double(schedule.k_blocks()) / splits) * stage + 1500;
  return with_memory(problem, tile, schedule, (waves * item + 1500) / kSm90Clock, bytes, has_partials);
}

std::vector<Plan> mn_major_candidates(const Problem& problem) {
  struct Scored {
    Plan plan;
    double time;
  };
  std::vector<Scored> scored;
  const int workers = device_facts().multiprocessors;
  for (int tile = 0; tile < int(std::size(kMnMajorTiles)); ++tile) {
    const TileScheduler whole = sm90_schedule(problem, kMnMajorTiles[tile], 1);
    std::vector<Scored> own;
    for (int splits = 1; splits <= std::min(whole.k_blocks(), 4 * workers); ++splits) {
      if (splits > 1 && (whole.work_items() * splits > 8 * workers || whole.k_blocks() / splits < 4)) break;
      own.push_back(
          {{Rung::wgmma, kFirstMnMajorTile + tile, splits, tile_workspace(problem, splits, nullptr).bytes},
           mn_major_expected_time(problem, tile, splits, problem.bytes(), splits > 1)});
    }
    std::stable_sort(own.begin(), own.end(), [](auto& a, auto& b) { return a.time < b.time; });
    own.resize(std::min<std::size_t>(own.size(), 3));
    scored.insert(scored.end(), own.begin(), own.end());
  }
  std::stable_sort(scored.begin(), scored.end(), [](auto& a, auto& b) { return a.time < b.time; });
  std::vector<Plan> plans;
  for (const auto& one : scored) plans.push_back(one.plan);
  return plans;
}

Launch bind_mn_major(const Problem& problem, const Plan& plan, const Buffers& buffers) {
  const TileWorkspace workspace = tile_workspace(problem, plan.splits, buffers.workspace);
  const Epilogue epilogue = epilogue_of(problem, buffers);
  MnMajorCall call{};
  call.tile = plan.tile - kFirstMnMajorTile;
  call.schedule = sm90_schedule(problem, kMnMajorTiles[call.tile], plan.splits);
  call.blocks = std::min(call.schedule.work_items(), device_facts().multiprocessors);
  call.members = buffers.members;
  const MapMaker maps(buffers.members);
  const auto map = [&](const void* operand, std::int64_t extent, std::int64_t pitch) {
    return maps.tiled(DType::f32, operand, {extent, problem.k}, {pitch}, {32, 32});
  };
  call.a = map(buffers.a, problem.m, problem.lda);
  call.b = map(buffers.b, problem.n, problem.ldb);
  call.result = {epilogue, int(problem.m), int(problem.n), partial_pitch(problem)};
  if (plan.splits > 1) call.result.epilogue.partial = workspace.partial;
  return [=, held = maps.held()](Stream on) {
    sm90_launch_mn_major(call, on.get());
    finish_tiles(problem, plan, epilogue, workspace.partial, workspace.slots, buffers, on.get());
  };
}

}  // namespace convoy::kernels::gemm
