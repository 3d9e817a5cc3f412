// Implements lane_plan.h. Lanes are sequences of instructions that a device runs at the same time,
// each as a CUDA stream.
#include "app/execute/lane_plan.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>

namespace convoy::app {
namespace {

// Remembers which instruction last wrote each piece of memory, and which instructions have read the
// piece since then. Pieces end wherever a range of an instruction begins or ends, so a range
// consists of whole pieces.
class Touched {
 public:
  // Notes that instruction `reader` reads a range. Appends to `waits` the instructions that the
  // reader must wait for.
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

  std::map<const std::byte*, Piece> pieces_;  // the key is the first byte of the piece
};

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Returns the number of lanes that compute, without the lanes for copies.
int compute_lanes(const Program& program, const LaneOrder& lanes) {
  int count = 1;
  for (std::size_t i = 0; i < lanes.lane.size(); ++i)
    if (program.instructions()[i].engine == Engine::compute) count = std::max(count, lanes.lane[i] + 1);
  return count;
}

void check(const LaneOrder& lanes, const std::vector<std::vector<int>>& dependences) {
  std::vector<bool> launched(dependences.size(), false);
  const bool complete = lanes.order.size() == dependences.size() && lanes.lane.size() == dependences.size() &&
                        (lanes.urgent.empty() || lanes.urgent.size() == dependences.size());
  for (const int i : lanes.order) {
    const bool fits = complete && i >= 0 && at(i) < launched.size() && !launched[at(i)] &&
                      lanes.lane[at(i)] >= 0 &&
                      std::ranges::all_of(dependences[at(i)], [&](int of) { return launched[at(of)]; });
    if (!fits)
      throw std::logic_error("internal error: the lanes of a program are not those of its instructions");
    launched[at(i)] = true;
  }
  if (!complete) throw std::logic_error("internal error: a program's lanes lack some of its instructions");
}

// Adds the waits between lanes to a plan in which every instruction has a lane. Leaves out a wait
// that other waits imply.
void connect(LanePlan& plan, const std::vector<std::vector<int>>& dependences) {
  std::vector<int> position(plan.steps.size());  // indexed by instruction: its place in plan.order
  for (std::size_t p = 0; p < plan.order.size(); ++p) position[at(plan.order[p])] = static_cast<int>(p);
  std::vector<int> last(at(plan.lanes), -1);  // indexed by lane: its latest position
  // seen[p][lane]: the latest position in a lane that is known to end before position p starts.
  std::vector<std::vector<int>> seen;
  for (std::size_t p = 0; p < plan.order.size(); ++p) {
    const std::size_t i = at(plan.order[p]);
    LanePlan::Step& step = plan.steps[i];
    int& previous = last[at(step.lane)];
    std::vector<int>& before = seen.emplace_back(at(plan.lanes), -1);
    if (previous >= 0) before = seen[at(previous)];
    before[at(step.lane)] = previous;
    std::vector<int> waits;
    for (const int of : dependences[i]) waits.push_back(position[at(of)]);
    std::ranges::sort(waits, std::ranges::greater());  // the latest first, because it may imply earlier ones
    for (const int of : waits) {
      LanePlan::Step& other = plan.steps[at(plan.order[at(of)])];
      if (before[at(other.lane)] >= of) continue;  // other waits imply this one
      if (other.records < 0) other.records = plan.events++;
      step.waits.push_back(other.records);
      const std::vector<int>& theirs = seen[at(of)];
      for (std::size_t lane = 0; lane < before.size(); ++lane)
        before[lane] = std::max(before[lane], theirs[lane]);
      before[at(other.lane)] = std::max(before[at(other.lane)], of);
    }
    previous = static_cast<int>(p);
  }
}

}  // namespace

std::vector<std::vector<int>> dependences_of(const Program& program) {
  Touched touched;
  std::vector<std::vector<int>> all;
  for (int i = 0; i < std::ssize(program.instructions()); ++i) {
    const Instruction& instruction = program.instructions()[at(i)];
    std::vector<int>& waits = all.emplace_back();
    for (const MemoryRange& range : instruction.reads) touched.read(range, i, waits);
    for (const MemoryRange& range : instruction.writes) touched.write(range, i, waits);
    std::erase(waits, i);
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  }
  return all;
}

LaneOrder fixed_lanes(const Program& program, const std::vector<std::vector<int>>& dependences, int lanes) {
  LaneOrder result;
  std::vector<int> last(at(std::max(lanes, 1)), -1);  // indexed by lane: its latest instruction
  for (int i = 0; i < std::ssize(dependences); ++i) {
    result.order.push_back(i);
    int best = -1;
    // Prefer a lane whose last instruction this one must wait for anyway, because the wait is then
    // free. If there are several, take the lane whose last instruction is the latest.
    for (int lane = 0; lane < std::ssize(last); ++lane) {
      const int tail = last[at(lane)];
      const bool follows = tail >= 0 && std::ranges::binary_search(dependences[at(i)], tail);
      if (follows && (best < 0 || tail > last[at(best)])) best = lane;
    }
    if (best < 0) best = static_cast<int>(std::ranges::min_element(last) - last.begin());
    result.lane.push_back(best);
    if (program.instructions()[at(i)].engine == Engine::compute) last[at(best)] = i;
  }
  return result;
}

LanePlan plan_lanes(const Program& program, int lanes) {
  std::vector<std::vector<int>> dependences = dependences_of(program);
  const LaneOrder own = program.lanes().empty() ? fixed_lanes(program, dependences, lanes) : program.lanes();
  if (!program.lanes().empty()) lanes = compute_lanes(program, own);
  for (const auto& [first, second] : own.holds) dependences.at(at(second)).push_back(first);
  check(own, dependences);
  LanePlan plan;
  const int computing = std::max(lanes, 1);
  const bool copies = std::ranges::any_of(program.instructions(), [](const Instruction& instruction) {
    return instruction.engine != Engine::compute;
  });
  plan.lanes = computing + (copies ? kCopyLanes : 0);
  plan.order = own.order;
  for (std::size_t i = 0; i < own.lane.size(); ++i) {
    const Engine engine = program.instructions()[i].engine;
    const int copying = computing + (engine == Engine::copy_out ? 0 : 1);
    plan.steps.push_back({engine == Engine::compute ? own.lane[i] : copying,
                          {},
                          -1,
                          !own.urgent.empty() && own.urgent[i] != 0,
                          program.instructions()[i].background});
  }
  if (plan.lanes > 1) connect(plan, dependences);
  return plan;
}

}  // namespace convoy::app
