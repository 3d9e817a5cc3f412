// The memory that a rank's steps need: one arena, divided into regions. Training and evaluation
// share the region of the activations. Members have the regions one after the other, so that each
// region of a member lies stride() bytes after that of the member before. But stored images come
// first and once, for all members.
// Parameters, gradients and optimizer states are flat buffers in the order in which backward
// finishes gradients. So a collective sends a contiguous slice, and one kernel updates all
// parameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/compile/compiled_graph.h"

namespace convoy::app {

struct CompiledSteps;
struct StepOptions;

// The regions in their order in the arena.
enum class Region : std::uint8_t {
  images,  // first: members may share it
  control,
  parameters,
  bf16_parameters,
  optimizer,
  statistics,
  averages,
  accumulated_gradients,
  labels,
  transforms,
  mix,
  metrics,
  activations,
  gradients,   // near the end: ranks of one host may keep them in shared memory instead
  all_reduce,  // scratch space for summing shared gradients
  count
};
std::string_view name_of(Region region);

inline constexpr std::size_t kStateAlignment = 64;  // of every running statistic, in bytes

struct MemoryUse {
  std::string purpose;
  std::int64_t bytes = 0;
};

class MemoryPlan {
 public:
  static constexpr std::int64_t kPage = 4096;  // regions have multiples of it

  MemoryPlan() = default;
  // `shared_scratch` returns how many bytes the ranks reserve in addition to gradients of `bytes`
  // bytes if they share them. It may be empty.
  MemoryPlan(const CompiledSteps& steps, const StepOptions& options,
             const std::function<std::size_t(std::size_t bytes)>& shared_scratch);

  bool has(Region region) const { return bytes_[index(region)] >= 0; }
  std::int64_t bytes(Region region) const { return has(region) ? bytes_[index(region)] : 0; }
  std::int64_t offset(Region region) const;  // from the start of the arena, of member 0
  int members() const { return members_; }
  std::int64_t stride() const;  // bytes from a member's regions to the next member's
  bool shares(Region region) const { return shared_images_ && region == Region::images; }
  std::int64_t total() const;           // of all members
  std::vector<MemoryUse> uses() const;  // the regions of all members in order, with their names
  void drop(Region region) { bytes_[index(region)] = -1; }

 private:
  int members_ = 1;
  bool shared_images_ = false;
  static std::size_t index(Region region) { return static_cast<std::size_t>(region); }
  void add(Region region, std::int64_t bytes);

  std::array<std::int64_t, static_cast<std::size_t>(Region::count)> bytes_ = filled();  // -1: not in the plan
  static constexpr std::array<std::int64_t, static_cast<std::size_t>(Region::count)> filled() {
    std::array<std::int64_t, static_cast<std::size_t>(Region::count)> none{};
    none.fill(-1);
    return none;
  }
};

}  // namespace convoy::app
