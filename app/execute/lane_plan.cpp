#include "app/execute/lane_plan.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace convoy::app {
namespace {

// Remembers which instructions last wrote and read each piece of memory. Pieces are cut where
// ranges begin or end.
class Touched {
 public:
  // Appends to `waits` the instructions that `reader` must wait for.
  void read(const MemoryRange& range, int reader, std::vector<int>& waits) {
    for_each_piece(range, [&](Piece& piece) {
      if (piece.writer >= 0) waits.push_back(piece.writer);
      piece.readers.push_back(reader);
    });
  }
  void write(const MemoryRange& range, int writer, std::vector<int>& waits) {
    for_each_piece(range, [&](Piece& piece) {
      if (piece.writer >= 0) waits.push_back(piece.writer);
      waits.insert(waits.end(), piece.readers.begin(), piece.readers.end());
      piece.writer = writer;
      piece.readers.clear();
    });
  }

 private:
  struct Piece {
    const std::byte* end = nullptr;
    int writer = -1;
    std::vector<int> readers;
  };

  template <typename Visit>
  void for_each_piece(const MemoryRange& range, Visit visit) {
    if (range.bytes <= 0) return;
    const auto* begin = static_cast<const std::byte*>(range.begin);
    const std::byte* end = begin + range.bytes;
    cut(begin), cut(end);
    for (const std::byte* at = begin; at < end;) {
      auto piece = pieces_.lower_bound(at);
      if (piece == pieces_.end() || piece->first > at) {  // no instruction has touched this gap
        const std::byte* next = piece == pieces_.end() ? end : std::min(end, piece->first);
        piece = pieces_.insert(piece, {at, Piece{next, -1, {}}});
      }
      visit(piece->second);
      at = piece->second.end;
    }
  }
  void cut(const std::byte* at) {
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return;
    --piece;
    if (piece->first == at || piece->second.end <= at) return;
    Piece second = piece->second;
    piece->second.end = at;
    pieces_.emplace(at, std::move(second));
  }

  std::map<const std::byte*, Piece> pieces_;  // each piece by its first byte
};

std::vector<std::vector<int>> dependences_of(const Program& program) {
  Touched touched;
  std::vector<std::vector<int>> all;
  for (int i = 0; i < std::ssize(program.instructions()); ++i) {
    const Instruction& instruction = program.instructions()[static_cast<std::size_t>(i)];
    std::vector<int>& waits = all.emplace_back();
    for (const MemoryRange& range : instruction.reads) touched.read(range, i, waits);
    for (const MemoryRange& range : instruction.writes) touched.write(range, i, waits);
    std::erase(waits, i);
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  }
  return all;
}

}  // namespace

LanePlan plan_lanes(const Program& program, int lanes) {
  LanePlan plan;
  const int computing = std::max(lanes, 1);
  const bool copies = std::ranges::any_of(program.instructions(), [](const Instruction& instruction) {
    return instruction.engine != Engine::compute;
  });
  plan.lanes = computing + (copies ? kCopyLanes : 0);
  plan.steps.resize(program.instructions().size());
  if (plan.lanes == 1) return plan;
  const auto dependences = dependences_of(program);
  // The latest instruction of each lane; -1: none yet.
  std::vector<int> last(static_cast<std::size_t>(plan.lanes), -1);
  // seen[i][lane]: the latest instruction of the lane that is known to end before instruction i
  // starts.
  std::vector<std::vector<int>> seen;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    LanePlan::Step& step = plan.steps[i];
    const Engine engine = program.instructions()[i].engine;
    // Prefer a lane whose latest instruction is one that instruction i must wait for; if there are
    // several, take the lane with the latest such instruction. Otherwise take the lane that has
    // been idle for longest.
    int best = engine == Engine::compute ? -1 : computing + (engine == Engine::copy_out ? 0 : 1);
    for (int lane = 0; lane < computing && engine == Engine::compute; ++lane) {
      const int tail = last[static_cast<std::size_t>(lane)];
      const bool follows = tail >= 0 && std::ranges::binary_search(dependences[i], tail);
      if (follows && (best < 0 || tail > last[static_cast<std::size_t>(best)])) best = lane;
    }
    if (best < 0)
      best = static_cast<int>(std::min_element(last.begin(), last.begin() + computing) - last.begin());
    step.lane = best;
    std::vector<int>& before = seen.emplace_back(static_cast<std::size_t>(plan.lanes), -1);
    const int previous = last[static_cast<std::size_t>(best)];
    if (previous >= 0) before = seen[static_cast<std::size_t>(previous)];
    before[static_cast<std::size_t>(best)] = previous;
    // The latest dependence comes first.
    for (auto at = dependences[i].rbegin(); at != dependences[i].rend(); ++at) {
      LanePlan::Step& other = plan.steps[static_cast<std::size_t>(*at)];
      // Other waits ensure this order already.
      if (before[static_cast<std::size_t>(other.lane)] >= *at) continue;
      if (other.records < 0) other.records = plan.events++;
      step.waits.push_back(other.records);
      const std::vector<int>& theirs = seen[static_cast<std::size_t>(*at)];
      for (std::size_t lane = 0; lane < before.size(); ++lane)
        before[lane] = std::max(before[lane], theirs[lane]);
      before[static_cast<std::size_t>(other.lane)] =
          std::max(before[static_cast<std::size_t>(other.lane)], *at);
    }
    last[static_cast<std::size_t>(best)] = static_cast<int>(i);
  }
  return plan;
}

}  // namespace convoy::app
