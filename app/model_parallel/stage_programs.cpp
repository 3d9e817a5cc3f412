// Implements stage_programs.h. A stage is the part of a step that one rank runs (plan.h). Groups of
// nodes must be in one stage (dependences.h).
#include "app/model_parallel/stage_programs.h"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <tuple>

namespace convoy::app {
namespace {

using Action = ProgramStep::Action;
std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Puts all events of the step into one sequence. The events are the run of each node, the beginning
// of each transfer, and the end of each transfer at its sender. They are numbered in this order.
class Sequencer {
 public:
  Sequencer(const StepDependences& dependences, const std::vector<int>& stage_of, int stages,
            const ExpectedTimes& times)
      : dependences_(dependences),
        stage_of_(stage_of),
        times_(times),
        nodes_(static_cast<int>(stage_of.size())) {
    result_.stages.resize(at(stages));
    check_groups();
  }

  StagePrograms run() {
    find_transfers();
    link_events();
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> ready;
    // A transfer begins when its producer ends, which is often the time at which the next node of
    // the stage starts. Put the transfer first, so that it need not wait for this node.
    const auto add = [&](int event) { ready.emplace(time_[at(event)], event < nodes_, event); };
    for (int event = 0; event < std::ssize(waiting_); ++event)
      if (waiting_[at(event)] == 0) add(event);
    while (!ready.empty()) {
      const int event = std::get<int>(ready.top());
      ready.pop();
      emit(event);
      for (const int next : followers_[at(event)])
        if (--waiting_[at(next)] == 0) add(next);
    }
    number_transfers();
    return std::move(result_);
  }

 private:
  // The expected time of an event, whether the event is a node, and its number. The queue returns
  // the smallest candidate first.
  using Candidate = std::tuple<std::int64_t, bool, int>;

  void check_groups() const {
    std::vector<int> stage(at(dependences_.groups), -1);
    for (int node = 0; node < nodes_; ++node) {
      int& of_group = stage[at(dependences_.group[at(node)])];
      if (of_group >= 0 && of_group != stage_of_[at(node)])
        throw std::logic_error(
            "found nodes that share a lasting tensor on different stages, expected one stage");
      of_group = stage_of_[at(node)];
    }
  }

  void find_transfers() {
    inputs_.resize(at(nodes_));
    std::map<std::tuple<int, TensorId, int>, int> known;
    for (const TensorUse& use : dependences_.uses) {
      const int from = stage_of_[at(use.producer)], to = stage_of_[at(use.consumer)];
      if (from == to) continue;
      const auto [found, is_new] =
          known.try_emplace({use.producer, use.tensor, to}, static_cast<int>(result_.transfers.size()));
      if (is_new) result_.transfers.push_back({use.tensor, use.producer, from, to});
      inputs_[at(use.consumer)].push_back(found->second);
    }
  }

  int begin_of(int transfer) const { return nodes_ + transfer; }
  int end_of(int transfer) const { return nodes_ + static_cast<int>(result_.transfers.size()) + transfer; }

  void link(int before, int after) {
    followers_[at(before)].push_back(after);
    ++waiting_[at(after)];
  }

  void link_events() {
    const int transfers = static_cast<int>(result_.transfers.size());
    followers_.resize(at(nodes_ + 2 * transfers));
    waiting_.assign(followers_.size(), 0);
    time_ = times_.start;
    for (const CutTensor& cut : result_.transfers) time_.push_back(times_.finish[at(cut.producer)]);
    for (int transfer = 0; transfer < transfers; ++transfer) {
      const CutTensor& cut = result_.transfers[at(transfer)];
      link(cut.producer, begin_of(transfer));
      link(begin_of(transfer), end_of(transfer));
      const auto released = times_.released.find({cut.producer, cut.to});
      time_.push_back(released != times_.released.end() ? released->second : first_read(transfer));
    }
    for (const TensorUse& use : dependences_.uses)
      if (stage_of_[at(use.producer)] == stage_of_[at(use.consumer)]) link(use.producer, use.consumer);
    for (int node = 0; node < nodes_; ++node)
      for (const int transfer : inputs_[at(node)]) link(begin_of(transfer), node);
    for (const auto& [first, second] : dependences_.order)
      if (stage_of_[at(first)] == stage_of_[at(second)]) link(first, second);
    // An update in place must not overwrite a tensor while it is being sent.
    for (int transfer = 0; transfer < transfers; ++transfer) link_overwriters(transfer);
  }

  void link_overwriters(int transfer) {
    const CutTensor& cut = result_.transfers[at(transfer)];
    for (const TensorUse& use : dependences_.uses)
      if (use.producer == cut.producer && use.tensor == cut.tensor)
        for (const auto& [reader, writer] : dependences_.order)
          if (reader == use.consumer && stage_of_[at(writer)] == cut.from) link(end_of(transfer), writer);
  }

  std::int64_t first_read(int transfer) const {
    std::int64_t first = times_.finish[at(result_.transfers[at(transfer)].producer)];
    bool found = false;
    for (int node = 0; node < nodes_; ++node) {
      const auto& inputs = inputs_[at(node)];
      if (std::ranges::find(inputs, transfer) == inputs.end()) continue;
      first = found ? std::min(first, times_.start[at(node)]) : std::max(first, times_.start[at(node)]);
      found = true;
    }
    return first;
  }

  void emit(int event) {
    const int transfers = static_cast<int>(result_.transfers.size());
    if (event < nodes_) return emit_node(event);
    const int transfer = (event - nodes_) % transfers;
    const CutTensor& cut = result_.transfers[at(transfer)];
    if (event >= nodes_ + transfers) {
      program(cut.from).push_back({Action::send_finish, transfer});
      return;
    }
    began_.push_back(transfer);
    program(cut.from).push_back({Action::send_begin, transfer});
    program(cut.to).push_back({Action::receive_begin, transfer});
  }

  void emit_node(int node) {
    received_.resize(result_.transfers.size(), false);
    for (const int transfer : inputs_[at(node)]) {
      if (received_[at(transfer)]) continue;
      received_[at(transfer)] = true;
      program(stage_of_[at(node)]).push_back({Action::receive_finish, transfer});
    }
    program(stage_of_[at(node)]).push_back({Action::run, node});
  }

  std::vector<ProgramStep>& program(int stage) { return result_.stages[at(stage)]; }

  // Renumbers the transfers in the order in which they begin.
  void number_transfers() {
    std::vector<int> number(result_.transfers.size());
    std::vector<CutTensor> sorted;
    for (const int transfer : began_) {
      number[at(transfer)] = static_cast<int>(sorted.size());
      sorted.push_back(result_.transfers[at(transfer)]);
    }
    result_.transfers = std::move(sorted);
    for (auto& stage : result_.stages)
      for (ProgramStep& step : stage)
        if (step.action != Action::run) step.index = number[at(step.index)];
  }

  const StepDependences& dependences_;
  const std::vector<int>& stage_of_;
  const ExpectedTimes& times_;
  const int nodes_;
  StagePrograms result_;
  // The transfers that bring the inputs of each node.
  std::vector<std::vector<int>> inputs_;
  std::vector<std::vector<int>> followers_;
  std::vector<int> waiting_;
  std::vector<std::int64_t> time_;
  std::vector<int> began_;
  std::vector<bool> received_;
};

}  // namespace

ExpectedTimes sequential_times(const StepGraph& graph) {
  ExpectedTimes times;
  for (std::int64_t node = 0; node < std::ssize(graph.nodes); ++node) {
    times.start.push_back(node);
    times.finish.push_back(node + 1);
  }
  return times;
}

StagePrograms make_stage_programs(const StepDependences& dependences, const std::vector<int>& stage_of,
                                  int stages, const ExpectedTimes& times) {
  return Sequencer(dependences, stage_of, stages, times).run();
}

}  // namespace convoy::app
