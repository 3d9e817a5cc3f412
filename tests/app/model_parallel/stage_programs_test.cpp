// Runs partitioned steps, one stage for each rank, without kernels. Instead of numbers, a tensor
// holds one symbol: a hash of the operations that made it. Symbols lie where the memory plan puts
// the tensors, so that overwriting shows. Each time, a random rank goes on.
//
// The ranks must not deadlock, and every send must meet its own receive. No tensor may be
// overwritten while a reader, a send or a receive needs it. Every operation must run once, on the
// inputs that it has on one rank.
#include "app/model_parallel/stage_programs.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "app/compile/compiled_steps.h"
#include "app/graph/graph_builder.h"
#include "app/model_parallel/stage_graph.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

using Symbol = std::uint64_t;
std::size_t at(int i) { return static_cast<std::size_t>(i); }

Symbol mix(Symbol a, Symbol b) {
  a ^= b + 0x9e3779b97f4a7c15ull + (a << 12) + (a >> 4);
  return a * 0xff51afd7ed558ccdull;
}

// The memory of a rank: one symbol per tensor. Writing a tensor destroys the symbols of all tensors
// that overlap it in the arena.
class SymbolMemory {
 public:
  explicit SymbolMemory(const CompiledGraph& graph) : graph_(graph) {}

  Symbol read(TensorId id) const {
    if (graph_.graph.tensors[at(id)].role != TensorRole::activation) return 1000 + static_cast<Symbol>(id);
    const auto found = held_.find(id);
    EXPECT_NE(found, held_.end()) << graph_.graph.tensors[at(id)].name << " was overwritten or never written";
    return found == held_.end() ? 0 : found->second;
  }
  void write(TensorId id, Symbol value) {
    if (graph_.graph.tensors[at(id)].role != TensorRole::activation) {
      results[graph_.graph.tensors[at(id)].name] = value;
      return;
    }
    std::erase_if(held_, [&](const auto& held) { return held.first != id && overlap(held.first, id); });
    held_[id] = value;
  }
  bool holds(TensorId id) const { return held_.contains(id); }

  std::map<std::string, Symbol> results;  // gradients and metrics

 private:
  bool overlap(TensorId a, TensorId b) const {
    const auto begin = [&](TensorId id) { return graph_.tensor_offset[at(id)]; };
    const auto end = [&](TensorId id) {
      return begin(id) + static_cast<std::int64_t>(graph_.descs[at(id)].bytes());
    };
    return begin(a) < end(b) && begin(b) < end(a);
  }
  const CompiledGraph& graph_;
  std::map<TensorId, Symbol> held_;
};

void run_node(const Node& node, SymbolMemory& memory) {
  Symbol value = hash_of(node.layer + std::string(node.name()));
  for (const TensorId input : node.inputs) value = mix(value, memory.read(input));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) memory.write(node.outputs[i], mix(value, i));
}

std::map<std::string, Symbol> run_whole(const CompiledGraph& whole) {
  SymbolMemory memory(whole);
  for (const Node& node : whole.graph.nodes) run_node(node, memory);
  return memory.results;
}

// The ranks and the messages between them. If `blocking` is set, a transfer begins only when both
// ranks have come to it, as with an MPI that moves nothing in the background.
class Ranks {
 public:
  Ranks(std::vector<CompiledGraph> stages, bool blocking, std::mt19937& random)
      : stages_(std::move(stages)), blocking_(blocking), random_(random), next_(stages_.size(), 0) {
    for (const CompiledGraph& stage : stages_) memory_.emplace_back(stage);
  }

  // Runs all programs. Returns false if the ranks wait for each other forever.
  bool run() {
    for (;;) {
      std::vector<std::size_t> able;
      for (std::size_t rank = 0; rank < stages_.size(); ++rank)
        if (next_[rank] < nodes(rank).size() && can_go_on(rank)) able.push_back(rank);
      if (able.empty()) break;
      const std::size_t rank = able[random_() % able.size()];
      // Runs up to twenty instructions of this rank, so that the ranks get out of step.
      for (auto stretch = random_() % 20; next_[rank] < nodes(rank).size() && can_go_on(rank); --stretch) {
        step(rank);
        if (stretch == 0) break;
      }
    }
    for (std::size_t rank = 0; rank < stages_.size(); ++rank)
      if (next_[rank] < nodes(rank).size()) return false;
    return true;
  }

  std::map<std::string, Symbol> results() const {
    std::map<std::string, Symbol> all;
    for (const SymbolMemory& memory : memory_)
      for (const auto& [name, value] : memory.results)
        EXPECT_TRUE(all.emplace(name, value).second) << name << " was made twice";
    return all;
  }

 private:
  using Action = Transfer::Action;
  using Channel = std::pair<std::size_t, std::size_t>;
  const std::vector<Node>& nodes(std::size_t rank) const { return stages_[rank].graph.nodes; }

  // Returns whether the other rank has begun the transfer, or begins it in its next instruction.
  bool peer_at(std::size_t rank, Action action, int transfer) const {
    const std::vector<Node>& program = nodes(rank);
    for (std::size_t i = 0; i <= next_[rank] && i < program.size(); ++i)
      if (const Transfer* end = std::get_if<Transfer>(&program[i].op);
          end && end->transfer == transfer && end->action == action)
        return true;
    return false;
  }

  bool can_go_on(std::size_t rank) const {
    const Node& node = nodes(rank)[next_[rank]];
    if (!node.is<Transfer>()) return true;
    const Transfer& end = std::get<Transfer>(node.op);
    const auto peer = static_cast<std::size_t>(end.peer);
    switch (end.action) {
      case Action::send_begin:
        return !blocking_ || peer_at(peer, Action::receive_begin, end.transfer);
      case Action::receive_begin:
        return !blocking_ || peer_at(peer, Action::send_begin, end.transfer);
      case Action::send_finish:
        // The send can finish only after the receive has begun.
        return received_.contains(end.transfer);
      case Action::receive_finish:
        return sent_.contains(end.transfer);
    }
    return false;
  }

  void step(std::size_t rank) {
    const Node& node = nodes(rank)[next_[rank]++];
    if (!node.is<Transfer>()) return run_node(node, memory_[rank]);
    const Transfer& end = std::get<Transfer>(node.op);
    const auto peer = static_cast<std::size_t>(end.peer);
    switch (end.action) {
      case Action::send_begin:
        sent_[end.transfer] = memory_[rank].read(node.inputs[0]);
        match(begun_sends_[{rank, peer}], begun_receives_[{rank, peer}], end.transfer);
        break;
      case Action::receive_begin:
        // The receive may write its buffer at any time from now on, so destroy the old contents.
        memory_[rank].write(node.outputs[0], 0);
        received_[end.transfer] = true;
        match(begun_receives_[{peer, rank}], begun_sends_[{peer, rank}], end.transfer);
        break;
      case Action::send_finish:
        EXPECT_EQ(memory_[rank].read(node.inputs[0]), sent_.at(end.transfer))
            << "a tensor was changed while it was sent";
        break;
      case Action::receive_finish:
        EXPECT_TRUE(memory_[rank].holds(node.outputs[0])) << "a tensor was overwritten while it was received";
        memory_[rank].write(node.outputs[0], sent_.at(end.transfer));
        break;
    }
  }

  // Checks that the k-th send between two ranks belongs to the k-th receive.
  void match(std::vector<int>& mine, const std::vector<int>& other, int transfer) {
    mine.push_back(transfer);
    if (mine.size() <= other.size()) {
      EXPECT_EQ(other[mine.size() - 1], transfer);
    }
  }

  std::vector<CompiledGraph> stages_;
  const bool blocking_;
  std::mt19937& random_;
  std::vector<SymbolMemory> memory_;
  std::vector<std::size_t> next_;
  std::map<int, Symbol> sent_;
  std::map<int, bool> received_;
  std::map<Channel, std::vector<int>> begun_sends_, begun_receives_;
};

CompiledSteps compile(const Network& network, int replicas) {
  const auto graph = [&](bool training) {
    return build_step_graph(network, {.training = training, .ranks = replicas});
  };
  return compile_graphs(graph(true), graph(false), {});
}

StepPlacement random_placement(const StepGraph& graph, const StepDependences& dependences, int stages,
                               std::mt19937& random) {
  StepPlacement placement;
  placement.stages = stages;
  std::vector<int> of_group;
  for (int group = 0; group < dependences.groups; ++group)
    of_group.push_back(static_cast<int>(random() % static_cast<unsigned>(stages)));
  for (const int group : dependences.group) placement.stage_of.push_back(of_group[at(group)]);
  // The programs must be valid whatever the times of the nodes are. So in two of three cases the
  // times are random and do not fit the graph.
  placement.times = sequential_times(graph);
  const std::size_t stir = random() % 3;
  for (std::size_t node = 0; node < graph.nodes.size() && stir > 0; ++node) {
    placement.times.start[node] = static_cast<std::int64_t>(random() % (stir == 1 ? 10 : 1000));
    placement.times.finish[node] = placement.times.start[node] + static_cast<std::int64_t>(random() % 100);
  }
  for (const TensorUse& use : dependences.uses)
    if (random() % 2 == 0)
      placement.times.released[{use.producer, placement.stage_of[at(use.consumer)]}] =
          static_cast<std::int64_t>(random() % 1000);
  return placement;
}

class StageProgramsTest : public testing::TestWithParam<int> {};

TEST_P(StageProgramsTest, AnyPlacementComputesWhatOneRankComputes) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (const Network& network : {every_op(), residual(), fuse(residual()), fuse(rectifying())})
    for (const int replicas : {1, 2}) {  // with two, all-reduces are added, which work in place
      const CompiledSteps whole = compile(network, replicas);
      const auto train = run_whole(*whole.train), evaluate = run_whole(whole.evaluate);
      ASSERT_GT(train.size(), 5u);
      const StepDependences dependences = find_dependences(whole.train->graph);
      for (int trial = 0; trial < 6; ++trial) {
        const int stages = 2 + trial % 4;
        const StepPlacement placement = random_placement(whole.train->graph, dependences, stages, random);
        for (const bool blocking : {false, true}) {
          std::vector<CompiledGraph> train_stages, evaluate_stages;
          for (int stage = 0; stage < stages; ++stage) {
            CompiledSteps steps = stage_of_steps(whole, placement, stage, {});
            train_stages.push_back(std::move(*steps.train));
            evaluate_stages.push_back(std::move(steps.evaluate));
          }
          Ranks training(std::move(train_stages), blocking, random);
          ASSERT_TRUE(training.run()) << "ranks wait for each other";
          EXPECT_EQ(training.results(), train);
          Ranks evaluation(std::move(evaluate_stages), blocking, random);
          ASSERT_TRUE(evaluation.run()) << "ranks wait for each other";
          EXPECT_EQ(evaluation.results(), evaluate);
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StageProgramsTest, testing::Range(1, 5));

// Each parameter, each statistic and the batch must be on one stage, and no other stage may reserve
// memory for them.
TEST(StagePrograms, EveryLastingTensorIsOnOneStage) {
  std::mt19937 random(9);
  const CompiledSteps whole = compile(residual(), 1);
  const StepDependences dependences = find_dependences(whole.train->graph);
  const StepPlacement placement = random_placement(whole.train->graph, dependences, 3, random);
  std::map<std::string, int> holders;
  int images = 0, labels = 0;
  for (int stage = 0; stage < 3; ++stage) {
    const CompiledSteps steps = stage_of_steps(whole, placement, stage, {});
    for (const GraphParameter& parameter : steps.train->graph.parameters) ++holders[parameter.spec.name];
    for (const auto& [tensor, spec] : steps.train->graph.states) ++holders[spec.name];
    images += steps.train->graph.images >= 0, labels += steps.train->graph.labels >= 0;
  }
  EXPECT_EQ(holders.size(), whole.train->graph.parameters.size() + whole.train->graph.states.size());
  for (const auto& [name, count] : holders) EXPECT_EQ(count, 1) << name;
  EXPECT_EQ(images, 1);
  EXPECT_EQ(labels, 1);
}

// In sequential_times() a node starts when the node before it ends. So a transfer and the next node
// begin at the same time. The transfer must come first.
TEST(StagePrograms, ATensorIsSentRightAfterItsProducer) {
  const CompiledSteps whole = compile(residual(), 1);
  const StepDependences dependences = find_dependences(whole.train->graph);
  std::vector<int> stage_of;
  for (const int group : dependences.group) stage_of.push_back(group % 2);
  const StagePrograms programs =
      make_stage_programs(dependences, stage_of, 2, sequential_times(whole.train->graph));
  ASSERT_GT(programs.transfers.size(), 5u);
  for (const auto& program : programs.stages) {
    int last = -1;
    for (const ProgramStep& step : program) {
      if (step.action == ProgramStep::Action::run) last = step.index;
      if (step.action == ProgramStep::Action::send_begin) {
        EXPECT_EQ(programs.transfers[at(step.index)].producer, last);
      }
    }
  }
}

// A placement must be refused if it puts nodes that share a parameter on different stages, or if it
// has another number of nodes than the step.
TEST(StagePrograms, RefusesPlacementsOfOtherSteps) {
  const CompiledSteps whole = compile(residual(), 1);
  StepPlacement placement;
  placement.stages = 2;
  placement.times = sequential_times(whole.train->graph);
  for (std::size_t node = 0; node < whole.train->graph.nodes.size(); ++node)
    placement.stage_of.push_back(static_cast<int>(node % 2));
  EXPECT_THROW(stage_of_steps(whole, placement, 0, {}), std::logic_error);
  placement.stage_of.pop_back();
  EXPECT_THROW(stage_of_steps(whole, placement, 0, {}), std::runtime_error);
}

}  // namespace
}  // namespace convoy::app
