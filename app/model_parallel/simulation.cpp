// Implements simulation.h. A stage is the part of a step that one rank runs (plan.h).
#include "app/model_parallel/simulation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

namespace convoy::app {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kInstant = 1e-9;  // in milliseconds; work takes at least this time
std::size_t at(int i) { return static_cast<std::size_t>(i); }

class ProgramLoop {
 public:
  ProgramLoop(const StagePrograms& programs, const ProgramCosts& costs)
      : programs_(programs),
        costs_(costs),
        stages_(programs.stages.size()),
        running_(stages_.size()),
        speed_(stages_.size()),
        transfers_(programs.transfers.size()),
        incoming_(stages_.size()) {
    for (int i = 0; i < std::ssize(programs.transfers); ++i)
      incoming_[at(programs.transfers[at(i)].to)].push_back(i);
  }

  double run() {
    for (;;) {
      // One stage may unblock another. So repeat until no stage can do more at this time.
      for (bool moved = true; moved;) {
        moved = false;
        for (int stage = 0; stage < std::ssize(stages_); ++stage) moved |= go_on(stage);
      }
      if (std::ranges::all_of(stages_, [](const Stage& stage) { return stage.ended; })) return now_;
      const double step = until_next();
      if (step == kNever) throw std::runtime_error("the ranks' programs wait for each other");
      now_ += step;
      for (std::size_t stage = 0; stage < stages_.size(); ++stage) advance(stage, step);
    }
  }

 private:
  struct Stage {
    // The index of the next instruction in the stage's program.
    std::size_t next = 0;
    Work work;
    // Milliseconds that `work` still needs if the stage runs at full speed; 0 if it does not work.
    double left = 0;
    // The transfer that the stage is receiving at present, or -1 if `work` is other work.
    int receiving = -1;
    bool updated = false, ended = false;
  };
  struct Transfer {
    bool offered = false, expected = false, taken = false;
    // The time at which the tensor arrives. From then on the receiver can take it.
    double here = kNever;
  };

  bool is_working(const Stage& stage) const { return stage.left > 0; }

  void work_on(int stage, const Work& work) {
    stages_[at(stage)].work = work;
    stages_[at(stage)].left = std::max(work.ms, kInstant);
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
    // If receiving needs no work, the tensor is taken as soon as it arrives.
    if (costs_.transfers[at(transfer)].receiver_ms <= 0 && of.here <= now_ + kInstant) of.taken = true;
    return of.taken;
  }

  // Starts the stage's work for receiving a tensor that has arrived. Returns false if there is no
  // such tensor.
  bool receive(int stage) {
    for (const int transfer : incoming_[at(stage)]) {
      if (taken(transfer) || transfers_[at(transfer)].here > now_ + kInstant) continue;
      stages_[at(stage)].receiving = transfer;
      work_on(stage, {costs_.transfers[at(transfer)].receiver_ms});
      return true;
    }
    return false;
  }

  // Starts instructions of the stage until it is busy or must wait. Returns whether it started any.
  bool go_on(int index) {
    Stage& stage = stages_[at(index)];
    bool moved = false;
    while (!stage.ended && !is_working(stage)) {
      if (receive(index)) return true;
      if (!instruction(index)) return moved;
      moved = true;
    }
    return moved;
  }

  // Starts the stage's next instruction. Returns false if the instruction must wait.
  bool instruction(int index) {
    Stage& stage = stages_[at(index)];
    const std::vector<ProgramStep>& program = programs_.stages[at(index)];
    if (stage.next == program.size()) {
      if (stage.updated)
        stage.ended = true;
      else
        work_on(index, costs_.updates[at(index)]);
      return stage.updated = true;
    }
    const ProgramStep& step = program[stage.next];
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
    ++stage.next;
    return true;
  }

  double until_next() {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) running_[stage] = is_working(stages_[stage]);
    double step = kNever;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      if (!running_[stage]) continue;
      speed_[stage] =
          costs_.processors.speed(static_cast<int>(stage), running_, stages_[stage].work.slowdown);
      step = std::min(step, stages_[stage].left / speed_[stage]);
    }
    for (const Transfer& transfer : transfers_)
      if (!transfer.taken && transfer.here > now_ + kInstant && transfer.here < kNever)
        step = std::min(step, transfer.here - now_);
    return step;
  }

  void advance(std::size_t index, double step) {
    Stage& stage = stages_[index];
    if (!running_[index]) return;
    stage.left -= step * speed_[index];
    if (stage.left > kInstant / 2) return;
    stage.left = 0;
    if (stage.receiving >= 0) transfers_[at(stage.receiving)].taken = true;
    stage.receiving = -1;
  }

  const StagePrograms& programs_;
  const ProgramCosts& costs_;
  std::vector<Stage> stages_;
  std::vector<bool> running_;
  std::vector<double> speed_;
  std::vector<Transfer> transfers_;
  std::vector<std::vector<int>> incoming_;  // the transfers to each stage
  // The time from which each link (from, to) is free.
  std::map<std::pair<int, int>, double> link_free_;
  double now_ = 0;
};

}  // namespace

double simulate_programs(const StagePrograms& programs, const ProgramCosts& costs) {
  return ProgramLoop(programs, costs).run();
}

}  // namespace convoy::app
