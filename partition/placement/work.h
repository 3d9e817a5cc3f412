// The costs of a search's steps. A search is limited by their sum instead of by time, so that it
// does the same on a busy machine as on an idle one. A unit is about a nanosecond of a core of an
// x86-64 server of 2023, for graphs that fit its caches.
#pragma once

#include <cstdint>

namespace convoy::partition::work {

constexpr std::int64_t kMove = 1600;     // to choose, apply and undo a move
constexpr std::int64_t kRecompute = 88;  // to compute one node's times or its tail again
constexpr std::int64_t kReplay = 30;     // to compute one node's times again under contention
constexpr std::int64_t kPass = 15;       // to visit one node in a pass over the graph
constexpr std::int64_t kList = 45;       // to place one node in list scheduling
constexpr std::int64_t kMemory = 8;      // to count one node or edge in the memory of a schedule

}  // namespace convoy::partition::work
