// Plans in which order the parts of a state are copied to a device: what the next step uses first
// comes first. The idea of groups, whose kernels start when the group has arrived, is that of
// PipeSwitch (Bai et al., OSDI 2020); that of the order is TicTac's (Hashemi et al., MLSys 2019).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/execute/memory_range.h"

namespace convoy::app {

// Ranges that are copied one after the other and arrive together.
using CopyGroup = std::vector<MemoryRange>;

// Divides `state` into groups that hold each byte once. `first_used` are ranges in the order in
// which the step uses them; what it does not use comes last. A group has at least `least_bytes`,
// since each costs the device a few microseconds, but the last two may have fewer.
std::vector<CopyGroup> plan_copies(const MemoryRange& state, std::span<const MemoryRange> first_used,
                                   std::int64_t least_bytes);

}  // namespace convoy::app
