// Plans the order in which the parts of a job's state are copied to a device. Parts that the next
// step uses first are copied first, as in TicTac (Hashemi et al., MLSys 2019). The parts form
// groups, and kernels can start when their group has arrived, as in PipeSwitch (Bai et al., OSDI
// 2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/execute/memory_range.h"

namespace convoy::app {

// Ranges that are copied one after the other and arrive together.
using CopyGroup = std::vector<MemoryRange>;

// Divides `state` into groups that together hold each byte once. `first_used` lists the ranges that
// the step uses, in the order of their use. Bytes that the step does not use come last. A group has
// at least `least_bytes`, because each group costs the device a few microseconds. Only the last
// group of used bytes and the last group of other bytes may be smaller.
std::vector<CopyGroup> plan_copies(const MemoryRange& state, std::span<const MemoryRange> first_used,
                                   std::int64_t least_bytes);

}  // namespace convoy::app
