// The costs of the steps of a search. A search is limited by the sum of its costs instead of by
// time, so that its result does not depend on the load of the machine. One unit is about a
// nanosecond on one core of an x86-64 server of 2023, for graphs that fit its caches.
#pragma once

#include <cstdint>

namespace convoy::partition::work {

constexpr std::int64_t kMove = 1100;     // to choose, apply and undo a move
constexpr std::int64_t kRecompute = 60;  // to compute one node's times or its tail again
constexpr std::int64_t kReplay = 30;     // to compute one node's times again under contention
constexpr std::int64_t kPass = 15;       // to visit one node in a pass over the graph
constexpr std::int64_t kList = 45;       // to place one node in list scheduling
constexpr std::int64_t kMemory = 8;      // to count one node or edge in the memory of a schedule

}  // namespace convoy::partition::work
