#include "app/model_parallel/simulation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

namespace convoy::app {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kInstant = 1e-9;  // ms
std::size_t at(int i) { return static_cast<std::size_t>(i); }

class ProgramLoop {
 public:
  ProgramLoop(const RankPrograms& programs, const ProgramCosts& costs)
      : programs_(programs),
        costs_(costs),
        parts_(programs.parts.size()),
        running_(parts_.size()),
        speed_(parts_.size()),
        transfers_(programs.transfers.size()),
        incoming_(parts_.size()) {
    for (int i = 0; i < std::ssize(programs.transfers); ++i)
      incoming_[at(programs.transfers[at(i)].to)].push_back(i);
  }

  double run() {
    for (;;) {
      // What one rank begins may be what another waits for.
      for (bool moved = true; moved;) {
        moved = false;
        for (int part = 0; part < std::ssize(parts_); ++part) moved |= go_on(part);
      }
      if (std::ranges::all_of(parts_, [](const Part& part) { return part.ended; })) return now_;
      const double step = until_next();
      if (step == kNever) throw std::runtime_error("the ranks' programs wait for each other");
      now_ += step;
      for (std::size_t part = 0; part < parts_.size(); ++part) advance(part, step);
    }
  }

 private:
  struct Part {
    std::size_t next = 0;  // of its program
    Work work;
    double left = 0;     // of it, alone on a processor
    int receiving = -1;  // the transfer that it works for
    bool updated = false, ended = false;
  };
  struct Transfer {
    bool offered = false, expected = false, taken = false;
    double here = kNever;  // from then on only the receiver has anything to do
  };

  bool is_working(const Part& part) const { return part.left > 0; }

  void work_on(int part, const Work& work) {
    parts_[at(part)].work = work;
    parts_[at(part)].left = std::max(work.ms, kInstant);
  }

  void begin(int transfer) {
    Transfer& of = transfers_[at(transfer)];
    if (!of.offered || !of.expected) return;
    const CutTensor& cut = programs_.transfers[at(transfer)];
    double& link_free = link_free_[{cut.from, cut.to}];
    const double begin = std::max(link_free, now_);
    of.here = begin + costs_.transfers[at(transfer)].background_ms;
    link_free = begin + costs_.transfers[at(transfer)].link_ms;
  }

  bool taken(int transfer) {
    Transfer& of = transfers_[at(transfer)];
    // Nothing left for the receiver to do.
    if (costs_.transfers[at(transfer)].receiver_ms <= 0 && of.here <= now_ + kInstant) of.taken = true;
    return of.taken;
  }

  // Starts on a transfer that has come.
  bool receive(int part) {
    for (const int transfer : incoming_[at(part)]) {
      if (taken(transfer) || transfers_[at(transfer)].here > now_ + kInstant) continue;
      parts_[at(part)].receiving = transfer;
      work_on(part, {costs_.transfers[at(transfer)].receiver_ms});
      return true;
    }
    return false;
  }

  // Everything that the part can do at this moment; true if that was anything.
  bool go_on(int index) {
    Part& part = parts_[at(index)];
    bool moved = false;
    while (!part.ended && !is_working(part)) {
      if (receive(index)) return true;
      if (!instruction(index)) return moved;
      moved = true;
    }
    return moved;
  }

  // False: it waits.
  bool instruction(int index) {
    Part& part = parts_[at(index)];
    const std::vector<ProgramStep>& program = programs_.parts[at(index)];
    if (part.next == program.size()) {
      if (part.updated)
        part.ended = true;
      else
        work_on(index, costs_.updates[at(index)]);
      return part.updated = true;
    }
    const ProgramStep& step = program[part.next];
    switch (step.action) {
      case ProgramStep::Action::run:
        work_on(index, costs_.nodes[at(step.index)]);
        break;
      case ProgramStep::Action::send_begin:
        transfers_[at(step.index)].offered = true;
        begin(step.index);
        break;
      case ProgramStep::Action::receive_begin:
        transfers_[at(step.index)].expected = true;
        begin(step.index);
        break;
      case ProgramStep::Action::send_finish:
      case ProgramStep::Action::receive_finish:
        if (!taken(step.index)) return false;
        break;
    }
    ++part.next;
    return true;
  }

  double until_next() {
    for (std::size_t part = 0; part < parts_.size(); ++part) running_[part] = is_working(parts_[part]);
    double step = kNever;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (!running_[part]) continue;
      speed_[part] = costs_.processors.speed(static_cast<int>(part), running_, parts_[part].work.slowdown);
      step = std::min(step, parts_[part].left / speed_[part]);
    }
    for (const Transfer& transfer : transfers_)
      if (!transfer.taken && transfer.here > now_ + kInstant && transfer.here < kNever)
        step = std::min(step, transfer.here - now_);
    return step;
  }

  void advance(std::size_t index, double step) {
    Part& part = parts_[index];
    if (!running_[index]) return;
    part.left -= step * speed_[index];
    if (part.left > kInstant / 2) return;
    part.left = 0;
    if (part.receiving >= 0) transfers_[at(part.receiving)].taken = true;
    part.receiving = -1;
  }

  const RankPrograms& programs_;
  const ProgramCosts& costs_;
  std::vector<Part> parts_;
  std::vector<bool> running_;
  std::vector<double> speed_;
  std::vector<Transfer> transfers_;
  std::vector<std::vector<int>> incoming_;           // of every part
  std::map<std::pair<int, int>, double> link_free_;  // from when on, from one part to another
  double now_ = 0;
};

}  // namespace

double simulate_programs(const RankPrograms& programs, const ProgramCosts& costs) {
  return ProgramLoop(programs, costs).run();
}

}  // namespace convoy::app
