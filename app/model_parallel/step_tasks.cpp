#include "app/model_parallel/step_tasks.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

std::int64_t nanoseconds(double ms) { return std::llround(ms * 1e6); }

struct GroupLoad {
  int nodes = 0;
  std::int64_t resident = 0, parameter_bytes = 0;
};

class TaskMaker {
 public:
  TaskMaker(const CompiledGraph& step, const StepDependences& dependences, const TaskCosts& costs)
      : step_(step), dependences_(dependences), costs_(costs), groups_(at(dependences.groups)) {}

  partition::TaskGraph run() {
    load_groups();
    for (int node = 0; node < node_count(); ++node) add_node(node);
    add_updates();
    add_edges();
    return builder_.build();
  }

 private:
  int node_count() const { return static_cast<int>(step_.graph.nodes.size()); }
  std::int64_t bytes(TensorId id) const { return static_cast<std::int64_t>(step_.descs[at(id)].bytes()); }
  GroupLoad& group_of(int node) { return groups_[at(dependences_.group[at(node)])]; }

  void load_groups() {
    std::set<std::string> known;
    for (int node = 0; node < node_count(); ++node) {
      ++group_of(node).nodes;
      const Node& of = step_.graph.nodes[at(node)];
      for (const auto* operands : {&of.inputs, &of.outputs})
        for (const TensorId id : *operands) {
          const Tensor& tensor = step_.graph.tensors[at(id)];
          if (tensor.role == TensorRole::activation || !known.insert(lasting_name(step_.graph, id)).second)
            continue;
          // A group may use only the bf16 copy of a parameter. The group still keeps the parameter
          // itself, which has twice the bytes of the copy.
          const bool copied = tensor.role == TensorRole::parameter_copy;
          if (!copied && tensor.role != TensorRole::parameter && tensor.role != TensorRole::gradient) {
            group_of(node).resident += bytes(id);
            continue;
          }
          const std::int64_t of_parameter = bytes(id) * (copied ? 2 : 1);
          group_of(node).resident += of_parameter * (2 + costs_.optimizer_states) + (copied ? bytes(id) : 0);
          group_of(node).parameter_bytes += of_parameter;
        }
    }
  }

  double reduce_ms(std::int64_t bytes) const {
    return costs_.reduce_ms + costs_.reduce_ms_per_byte * static_cast<double>(bytes);
  }

  void add_node(int node) {
    const Node& of = step_.graph.nodes[at(node)];
    const GroupLoad& group = group_of(node);
    const bool first = seen_.insert(dependences_.group[at(node)]).second;
    partition::TaskNode task;
    task.id = node;
    task.name = fmt::format("{}/{}", of.layer, of.name());
    task.time =
        nanoseconds(of.is<AllReduce>() ? reduce_ms(bytes(of.inputs[0])) : costs_.times.node_ms[at(node)]);
    task.resident_bytes = first ? group.resident : 0;
    for (const TensorId output : of.outputs)
      if (step_.graph.tensors[at(output)].role == TensorRole::activation) task.output_bytes += bytes(output);
    if (group.nodes > 1 || group.parameter_bytes > 0) task.colocate = dependences_.group[at(node)];
    builder_.add_node(task);
  }

  void add_updates() {
    update_.assign(groups_.size(), -1);
    for (int group = 0; group < dependences_.groups; ++group) {
      const GroupLoad& load = groups_[at(group)];
      if (load.parameter_bytes == 0) continue;
      partition::TaskNode task;
      task.id = update_[at(group)] = node_count() + updates_++;
      task.name = fmt::format("update {}", group);
      // On a CPU the computing thread also sums the gradients over the replicas. That time counts
      // as a part of the update.
      const auto size = static_cast<double>(load.parameter_bytes);
      task.time = nanoseconds(size / sizeof(float) * costs_.times.update_ms_per_element +
                              size * costs_.reduce_ms_per_byte);
      task.colocate = group;
      builder_.add_node(task);
    }
  }

  void add_edges() {
    std::map<std::pair<int, int>, std::int64_t> edges;
    for (const TensorUse& use : dependences_.uses) edges[{use.producer, use.consumer}] += bytes(use.tensor);
    for (const auto& before : dependences_.order) edges.try_emplace(before, 0);
    for (int node = 0; node < node_count(); ++node)
      if (const int update = update_[at(dependences_.group[at(node)])]; update >= 0)
        edges.try_emplace({node, update}, 0);
    for (const auto& [ends, size] : edges) builder_.add_edge(ends.first, ends.second, size);
  }

  const CompiledGraph& step_;
  const StepDependences& dependences_;
  const TaskCosts& costs_;
  partition::TaskGraphBuilder builder_{"training step"};
  std::vector<GroupLoad> groups_;
  std::set<int> seen_;
  // The update task of each group; -1 if the group has no parameters.
  std::vector<int> update_;
  int updates_ = 0;
};

}  // namespace

partition::TaskGraph make_step_tasks(const CompiledGraph& step, const StepDependences& dependences,
                                     const TaskCosts& costs) {
  return TaskMaker(step, dependences, costs).run();
}

}  // namespace convoy::app
