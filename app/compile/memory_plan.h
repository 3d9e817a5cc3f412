// Plans the memory that a rank's steps need: one arena, divided into regions. Training and
// evaluation use the same region for activations.
//
// A member is one of several trainings that run together (step_options.h). Every member has all
// regions. The regions of member m + 1 lie stride() bytes after the regions of member m. The
// exception is the region of stored images, which comes once at the start and serves all members.
//
// Parameters, gradients and optimizer states are flat buffers in the order in which backward
// finishes the gradients. So finished gradients are contiguous for a collective, and one kernel can
// update all parameters. Gradients of parameters that are updated early (early_updates.h) are among
// the activations instead.
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

// The regions, in their order in the arena.
enum class Region : std::uint8_t {
  // The members (trainings that run together) may share the images, so the images come first. The
  // later regions repeat for each member.
  images,
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
  // The gradients come near the end, because the ranks of a host may keep them in memory that they
  // share, outside the arena. The arena then ends before this region.
  gradients,
  all_reduce,  // scratch memory for summing shared gradients
  count
};
std::string_view name_of(Region region);

// Every running statistic starts at a multiple of these bytes.
inline constexpr std::size_t kStateAlignment = 64;

struct MemoryUse {
  std::string purpose;
  std::int64_t bytes = 0;
};

class MemoryPlan {
 public:
  // The size of every region is a multiple of these bytes.
  static constexpr std::int64_t kPage = 4096;

  MemoryPlan() = default;
  // `shared_scratch` returns the scratch bytes that the ranks of a host need to sum gradients of
  // `bytes` bytes in memory that they share. If it is empty, the plan has no region for scratch.
  MemoryPlan(const CompiledSteps& steps, const StepOptions& options,
             const std::function<std::size_t(std::size_t bytes)>& shared_scratch);

  bool has(Region region) const { return bytes_[index(region)] >= 0; }
  std::int64_t bytes(Region region) const { return has(region) ? bytes_[index(region)] : 0; }
  // Returns the bytes from the start of the arena to this region of member 0.
  std::int64_t offset(Region region) const;
  int members() const { return members_; }
  // Returns the bytes from a region of one member to the same region of the next member.
  std::int64_t stride() const;
  bool shares(Region region) const { return shared_images_ && region == Region::images; }
  std::int64_t total() const;  // bytes of the whole arena
  // Returns the name of each region and its bytes, summed over all members.
  std::vector<MemoryUse> uses() const;
  void drop(Region region) { bytes_[index(region)] = -1; }

 private:
  int members_ = 1;
  bool shared_images_ = false;
  static std::size_t index(Region region) { return static_cast<std::size_t>(region); }
  void add(Region region, std::int64_t bytes);

  // The bytes of each region; -1 if the plan does not have the region.
  std::array<std::int64_t, static_cast<std::size_t>(Region::count)> bytes_ = filled();
  static constexpr std::array<std::int64_t, static_cast<std::size_t>(Region::count)> filled() {
    std::array<std::int64_t, static_cast<std::size_t>(Region::count)> none{};
    none.fill(-1);
    return none;
  }
};

}  // namespace convoy::app
