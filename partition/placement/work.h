// Work of a search, counted in what it does instead of time. So a search does the same on a busy
// machine as on an idle one, and repeats. A unit is about a nanosecond of a core of an x86-64
// server of 2023, for graphs that fit its caches.
#pragma once

#include <cstdint>

namespace convoy::partition::work {

constexpr std::int64_t kMove = 1600;     // to choose, apply and undo a move
constexpr std::int64_t kRecompute = 88;  // a node's times or tail
constexpr std::int64_t kReplay = 30;     // a node's times under contention
constexpr std::int64_t kPass = 15;       // a node in a pass over the graph
constexpr std::int64_t kList = 45;       // a node in list scheduling
constexpr std::int64_t kMemory = 8;      // a node or edge when the memory of a schedule is computed

}  // namespace convoy::partition::work
