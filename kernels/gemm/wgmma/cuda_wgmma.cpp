// Host code of the wgmma kernels (sm90_kernel.cuh): chooses the tile shape and the number of
// splits, makes tensor maps, and launches the kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/device/cuda_error.h"
#include "kernels/device/cuda_tensor_map.h"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"
#include "kernels/gemm/wgmma/sm90_mn_major.h"

namespace convoy::kernels::gemm {

TileScheduler sm90_schedule(const Problem& problem, const Sm90Tile& tile, int splits) {
  const auto depth = std::int64_t(depth_bytes(tile) / problem.element_bytes()) * depth_taps(tile);
  return {int(ceil_div(problem.m, std::int64_t{tile.rows} * tile.cluster)),
          int(ceil_div(problem.n, tile.columns)), int(ceil_div(problem.k, depth)), splits, 16 / tile.cluster};
}

double with_memory(const Problem& problem, const Sm90Tile& tile, const TileScheduler& schedule,
                   double compute, double bytes, bool has_partials) {
  const double m = double(problem.m), n = double(problem.n), k = double(problem.k);
  const double again = double(schedule.n_tiles() - 1) * m * k + (std::ceil(m / tile.rows) - 1) * n * k;
  const double memory = (bytes + 0.0626 * again * double(problem.element_bytes())) / kCopyBytes;
  const double finish = has_partials ? 1.8 + 2.22 * schedule.splits() * m * n * 4 / kCopyBytes : 0;
  return std::max(compute, memory) + 0.131 * std::min(compute, memory) + finish;
}

// A pipeline stage takes the time of its products or, in small tiles, of its transfer from L2. A
// work item (TileScheduler) takes the time of all its stages. with_memory() combines the time of
// all work items with that of the memory traffic. The constants are fitted to 8,400 timings on an
// H200 (docs/results/training.md).
double sm90_expected_time(const Problem& problem, int tile_index, int splits, double bytes, bool has_partials,
                          bool windows) {
  // For each tile: measured cycles of a stage's products, per 32 elements of the tile.
  constexpr double kSlowness[] = {0.95, 0.95, 0.97, 1.1,  1.4,  1.4, 1.2, 1.09, 1.08, 0.97,
                                  1.13, 0.94, 0.96, 1.03, 0.96, 1.4, 1.0, 1.0,  1.2,  1.1};
  static_assert(std::size(kSlowness) == std::size(kSm90Tiles));
  const Sm90Tile& tile = kSm90Tiles[tile_index];
  const TileScheduler schedule = sm90_schedule(problem, tile, splits);
  const double workers = double(device_facts().multiprocessors / tile.cluster);
  const double waves = std::ceil(double(schedule.work_items()) / workers);
  const double area = double(tile.rows) * tile.columns;
  const int taps = depth_taps(tile);
  const double columns = tile.taps > taps ? 64 : double(tile.columns) * taps / tile.cluster;
  // TMA takes 8 more cycles for each row of 128 bytes that lies outside the tensor.
  const double outside =
      tile.taps > taps ? 0 : columns - columns * double(problem.n) / (schedule.n_tiles() * tile.columns);
  // A row of 64 bytes takes two thirds of the time of one of 128 bytes. A box of 32 columns has as
  // many rows as one of 64.
  double rows = tile.rows + columns;
  if (tile.channels32 == Channels32::as_k) rows *= 0.67;
  if (tile.channels32 == Channels32::as_columns && tile.taps == 1) rows += 0.33 * columns;
  const double load = (windows ? 2.06 : 1.57) * rows + 8 * outside;
  const double products = area / 32 * taps * kSlowness[tile_index] * depth_bytes(tile) / 128;
  const double main = std::ceil(double(schedule.k_blocks()) / splits) * std::max(products, load);
  const double store = 110 + 0.0206 * area * double(bytes_of(problem.output));
  const double item = tile.ping_pong ? std::max(main, 0.8 * (main + store)) + 103 : main + store;
  const double compute = (waves * item + 4700) / kSm90Clock;
  return with_memory(problem, tile, schedule, compute, bytes, has_partials);
}

namespace {

constexpr int kTiles = int(std::size(kSm90Tiles));

// An operand as the kernels read it. It is a copy (`repacked`) in two cases: if its pitch is no
// multiple of 16 bytes, so that TMA cannot read the original, and if tf32 needs k contiguous.
struct Operand {
  bool mn_major = false;  // in the matrix that the kernel reads, m or n is contiguous, not k
  bool repacked = false;
  bool transposed = false;                        // repacking transposes it
  std::int64_t rows = 0, columns = 0, pitch = 0;  // the shape of the matrix that the kernel reads
};

Operand operand_of(const Problem& problem, std::int64_t extent, bool mn_major, std::int64_t pitch) {
  Operand operand{mn_major, false, false, mn_major ? problem.k : extent, mn_major ? extent : problem.k,
                  pitch};
  const auto multiple = std::int64_t(16 / problem.element_bytes());
  if (problem.math == Math::tf32 && mn_major) {
    operand = {false, true, true, extent, problem.k, 0};
  } else if (pitch % multiple != 0) {
    operand.repacked = true;
  }
  if (operand.repacked) operand.pitch = ceil_div(operand.columns, multiple) * multiple;
  return operand;
}
Operand operand_a(const Problem& problem) {
  return operand_of(problem, problem.m, problem.transpose_a, problem.lda);
}
Operand operand_b(const Problem& problem) {
  return operand_of(problem, problem.n, !problem.transpose_b, problem.ldb);
}

// Returns whether the kernel stores raw sums, from which another kernel computes C. That is so if k
// is split, if C's old values are needed, or if rows of C are no multiples of 16 bytes (TMA cannot
// store such rows).
bool indirect(const Problem& problem, int splits) {
  const auto odd = [&](std::int64_t elements) {
    return elements * std::int64_t(bytes_of(problem.output)) % 16 != 0;
  };
  return splits > 1 || problem.beta != 0 || odd(problem.ldc) || odd(problem.n);
}

struct Workspace {
  std::uint8_t *a, *b;
  float *partial, *slots;
  std::size_t bytes;
};
Workspace carve(const Problem& problem, int splits, void* base) {
  Carver carver(base);
  const auto packed = [&](const Operand& operand) {
    const auto elements = operand.repacked ? std::size_t(operand.rows) * std::size_t(operand.pitch) : 0;
    return carver.take<std::uint8_t>(elements * problem.element_bytes());
  };
  Workspace workspace{};
  workspace.a = packed(operand_a(problem));
  workspace.b = packed(operand_b(problem));
  workspace.partial = carver.take<float>(indirect(problem, splits) ? partial_elements(problem, splits) : 0);
  workspace.slots = carver.take<float>(problem.column_sums ? slot_elements(problem.n, kSumSlots) : 0);
  workspace.bytes = carver.used();
  return workspace;
}

bool supports_wgmma(const Problem& problem) {
  return device_facts().major == 9 && problem.math != Math::fp32;
}

std::vector<Plan> wgmma_candidates(const Problem& problem) {
  if (is_mn_major(problem)) return mn_major_candidates(problem);
  struct Scored {
    Plan plan;
    double time;
  };
  std::vector<Scored> scored;
  for (int tile = 0; tile < kTiles; ++tile) {
    if (!suits_products(kSm90Tiles[tile])) continue;
    const TileScheduler whole = sm90_schedule(problem, kSm90Tiles[tile], 1);
    const int workers = device_facts().multiprocessors / kSm90Tiles[tile].cluster;
    std::vector<Scored> own;
    for (int splits = 1; splits <= std::min(whole.k_blocks(), 4 * workers); ++splits) {
      if (splits > 1 && (whole.work_items() * splits > 8 * workers || whole.k_blocks() / splits < 4)) break;
      const std::size_t bytes = carve(problem, splits, nullptr).bytes;
      own.push_back(
          {{Rung::wgmma, tile, splits, bytes},
           sm90_expected_time(problem, tile, splits, problem.bytes(), indirect(problem, splits), false)});
    }
    std::stable_sort(own.begin(), own.end(), [](auto& a, auto& b) { return a.time < b.time; });
    if (own.size() > 3) own.resize(3);
    scored.insert(scored.end(), own.begin(), own.end());
  }
  std::stable_sort(scored.begin(), scored.end(), [](auto& a, auto& b) { return a.time < b.time; });
  std::vector<Plan> plans;
  for (const auto& one : scored) plans.push_back(one.plan);
  return plans;
}

// Returns the arguments of a launch, except its schedule.
Sm90Call describe(const Problem& problem, const Sm90Tile& tile, int splits, const Buffers& buffers,
                  const Workspace& workspace, const MapMaker& maps) {
  const DType type = problem.math == Math::bf16 ? DType::bf16 : DType::f32;
  const auto depth = std::uint32_t(128 / problem.element_bytes());
  const auto map = [&](const Operand& operand, const void* own, const void* packed, int extent, int share) {
    const std::vector<std::uint32_t> box = operand.mn_major
                                               ? std::vector<std::uint32_t>{64, 64u / unsigned(share)}
                                               : std::vector<std::uint32_t>{depth, unsigned(extent / share)};
    return maps.tiled(type, operand.repacked ? packed : own, {operand.columns, operand.rows}, {operand.pitch},
                      box);
  };
  Sm90Call call{};
  call.a = map(operand_a(problem), buffers.a, workspace.a, tile.rows, 1);
  call.b = map(operand_b(problem), buffers.b, workspace.b, tile.columns, tile.cluster);
  call.m = int(problem.m);
  call.n = int(problem.n);
  call.alpha = 1;
  call.members = buffers.members;
  if (indirect(problem, splits)) {
    const std::int64_t pitch = partial_pitch(problem);
    call.c = maps.tiled(DType::f32, workspace.partial, {problem.n, problem.m, splits},
                        {pitch, pitch * problem.m}, {32, 64, 1});
    return call;
  }
  const std::int64_t pitch = problem.ldc;
  call.c = maps.tiled(problem.output, buffers.c, {problem.n, problem.m, 1}, {pitch, pitch * problem.m},
                      {unsigned(128 / bytes_of(problem.output)), 64, 1});
  call.alpha = problem.alpha;
  call.bias = problem.bias ? buffers.bias : nullptr;
  call.relu = problem.relu;
  call.bf16 = problem.output == DType::bf16;
  const bool forward = problem.math == Math::bf16 && !problem.transpose_a && problem.transpose_b;
  const bool fuses = forward && call.bf16 && 2 * device_facts().multiprocessors <= kSumSlots;
  call.sum_slots = problem.column_sums && fuses ? workspace.slots : nullptr;
  return call;
}

using Sm90Launch = void (*)(const Sm90Call&, cudaStream_t);
Sm90Launch launcher_of(const Problem& problem, bool a_mn_major, bool b_mn_major, bool sums) {
  if (problem.math == Math::tf32) return sm90_launch<Math::tf32, false, false, Extra::none>;
  if (a_mn_major && b_mn_major) return sm90_launch<Math::bf16, true, true, Extra::none>;
  if (a_mn_major) return sm90_launch<Math::bf16, true, false, Extra::none>;
  if (b_mn_major) return sm90_launch<Math::bf16, false, true, Extra::none>;
  return sums ? sm90_launch<Math::bf16, false, false, Extra::sums>
              : sm90_launch<Math::bf16, false, false, Extra::none>;
}

Launch bind_wgmma(const Problem& problem, const Plan& plan, const Buffers& buffers) {
  if (is_mn_major(problem)) return bind_mn_major(problem, plan, buffers);
  const Sm90Tile& tile = kSm90Tiles[plan.tile];
  const Operand a = operand_a(problem), b = operand_b(problem);
  const Workspace workspace = carve(problem, plan.splits, buffers.workspace);
  const MapMaker maps(buffers.members);
  Sm90Call call = describe(problem, tile, plan.splits, buffers, workspace, maps);
  call.tile = plan.tile;
  call.schedule = sm90_schedule(problem, tile, plan.splits);
  call.blocks =
      std::min(call.schedule.work_items(), device_facts().multiprocessors / tile.cluster) * tile.cluster;
  const Epilogue epilogue = epilogue_of(problem, buffers);
  const Sm90Launch launch = launcher_of(problem, a.mn_major, b.mn_major, call.sum_slots != nullptr);
  return [=, held = maps.held()](Stream on) {
    const cudaStream_t stream = on.get();
    const MemberLayout members = buffers.members;
    const auto pack = [&](const Operand& operand, const void* from, std::int64_t pitch, void* to) {
      if (operand.repacked)
        repack(from, pitch, operand.transposed, to, operand.pitch, operand.rows, operand.columns,
               problem.element_bytes(), stream, members);
    };
    pack(a, buffers.a, problem.lda, workspace.a);
    pack(b, buffers.b, problem.ldb, workspace.b);
    launch(call, stream);
    if (indirect(problem, plan.splits))
      sum_partials(epilogue, workspace.partial, plan.splits, problem.m, problem.n, partial_pitch(problem),
                   stream, members);
    if (!problem.column_sums) return;
    if (call.sum_slots == nullptr)
      sum_columns(epilogue, problem.m, problem.n, workspace.slots, stream, members);
    // Each of the two consumer warpgroups of a block (sm90_kernel.cuh) writes its own slot of
    // column sums.
    const int slots = call.sum_slots != nullptr ? 2 * call.blocks : kSumSlots;
    sum_slots(workspace.slots, slots, problem.n, buffers.column_sums, stream, members);
  };
}

}  // namespace

const RungEntry& wgmma_rung() {
  static const RungEntry entry = [] {
    RungEntry made{supports_wgmma, wgmma_candidates, bind_wgmma, {}};
    for (const auto& tile : kSm90Tiles) made.tiles.push_back(tile.name);
    for (const auto& tile : kMnMajorTiles) made.tiles.push_back(tile.name);
    return made;
  }();
  return entry;
}

}  // namespace convoy::kernels::gemm
