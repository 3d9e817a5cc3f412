#include "partition/pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace convoy::partition {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

class PipelinePlanner {
 public:
  PipelinePlanner(const CostModel& cost, bool replicate)
      : cost_(cost),
        graph_(cost.graph()),
        devices_(cost.device_count()),
        replicate_(replicate),
        nodes_(graph_.node_count()),
        work_(nodes_ + 1, 0),
        weights_(nodes_ + 1, 0),
        exchanged_(nodes_ + 1, 0),
        outputs_(nodes_ + 1, 0),
        receive_(nodes_ + 1, 0) {
    check();
    const auto order = graph_.topological_order();
    for (NodeIndex at = 0; at < nodes_; ++at) {
      work_[at + 1] = work_[at] + graph_.time(order[at]);
      weights_[at + 1] = weights_[at] + graph_.resident_bytes(order[at]);
      exchanged_[at + 1] = exchanged_[at] + graph_.parameter_bytes(order[at]);
      outputs_[at + 1] = outputs_[at] + graph_.output_bytes(order[at]);
    }
    find_cuts();
  }

  std::optional<Pipeline> run() {
    best_.assign(nodes_ + 1, std::vector<Choice>(devices_ + 1));
    best_[0][0].period = 0;
    for (NodeIndex last = 1; last <= nodes_; ++last)
      for (DeviceIndex used = 1; used <= devices_; ++used) choose(last, used);
    DeviceIndex used = 0;
    for (DeviceIndex count = 1; count <= devices_; ++count)
      if (best_[nodes_][count].period < best_[nodes_][used].period) used = count;
    if (best_[nodes_][used].period == kNever) return std::nullopt;
    return trace(used);
  }

 private:
  struct Choice {
    Nanoseconds period = kNever;
    NodeIndex first = 0;
    DeviceIndex replicas = 0;
  };

  void check() const {
    constexpr double kMostWork = 2e9;
    if (graph_.constrained())
      throw std::runtime_error("pipeline: the graph has pins or groups, expected none");
    if (!cost_.same_speeds()) throw std::runtime_error("pipeline: devices differ, expected all alike");
    for (DeviceIndex device = 1; device < devices_; ++device)
      if (cost_.machine().device(device).memory_limit != cost_.machine().device(0).memory_limit)
        throw std::runtime_error("pipeline: memory limits differ, expected one for all devices");
    const double work = 0.25 * nodes_ * nodes_ * devices_ * devices_;
    if (work > kMostWork)
      throw std::runtime_error(
          fmt::format("pipeline: {} nodes on {} devices, expected fewer: at most {:.0f} nodes", nodes_,
                      devices_, std::sqrt(kMostWork * 4) / devices_));
  }

  // For each position at which the topological order can be divided, adds up the transfer times of
  // the tensors that cross it. A tensor crosses all positions between its producer and its last
  // reader.
  void find_cuts() {
    const auto order = graph_.topological_order();
    std::vector<NodeIndex> place(nodes_);
    for (NodeIndex at = 0; at < nodes_; ++at) place[order[at]] = at;
    for (NodeIndex node = 0; node < nodes_; ++node) {
      NodeIndex last = place[node];
      Nanoseconds slowest = 0;
      for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
        last = std::max(last, place[graph_.target(edge)]);
        slowest = std::max(slowest, slowest_transfer(edge));
      }
      if (last == place[node]) continue;
      receive_[place[node] + 1] += 2 * slowest;  // the tensor moves forward, its gradient moves back
      receive_[last + 1 <= nodes_ ? last + 1 : nodes_] -= 2 * slowest;
    }
    for (NodeIndex at = 1; at <= nodes_; ++at) receive_[at] += receive_[at - 1];
  }

  Nanoseconds slowest_transfer(EdgeIndex edge) const {
    if (cost_.machine().same_links() || devices_ == 1) return cost_.transfer_time(edge);
    Nanoseconds most = 0;
    for (DeviceIndex from = 0; from < devices_; ++from)
      for (DeviceIndex to = 0; to < devices_; ++to)
        if (from != to) most = std::max(most, cost_.transfer_time(edge, from, to));
    return most;
  }

  PipelineStage stage(NodeIndex first, NodeIndex end, DeviceIndex used, DeviceIndex replicas) const {
    PipelineStage stage{first, end - 1, replicas};
    stage.work = work_[end] - work_[first];
    stage.receive = first > 0 ? receive_[first] : 0;
    const Bytes weights = weights_[end] - weights_[first];
    if (replicas > 1) {
      const Link& link = cost_.machine().link(0, 1);
      const double moved =
          2.0 * (replicas - 1) / replicas * static_cast<double>(exchanged_[end] - exchanged_[first]);
      stage.exchange = static_cast<Nanoseconds>(
          (moved / link.bytes_per_ns + static_cast<double>(2 * link.latency)) / replicas);
    }
    const DeviceIndex remaining = devices_ - (used - replicas);
    stage.bytes = weights + (outputs_[end] - outputs_[first]) * ((remaining + replicas - 1) / replicas);
    return stage;
  }

  void choose(NodeIndex end, DeviceIndex used) {
    Choice& best = best_[end][used];
    const Bytes limit = cost_.machine().device(0).memory_limit;
    for (DeviceIndex replicas = 1; replicas <= (replicate_ ? used : 1); ++replicas)
      for (NodeIndex first = 0; first < end; ++first) {
        const Nanoseconds before = best_[first][used - replicas].period;
        if (before >= best.period || (used == replicas) != (first == 0)) continue;
        const PipelineStage last = stage(first, end, used, replicas);
        const Nanoseconds period = std::max(before, last.period());
        if (period < best.period && last.bytes <= limit) best = {period, first, replicas};
      }
  }

  Pipeline trace(DeviceIndex used) const {
    Pipeline pipeline;
    pipeline.period = best_[nodes_][used].period;
    for (NodeIndex end = nodes_; end > 0;) {
      const Choice& choice = best_[end][used];
      pipeline.stages.insert(pipeline.stages.begin(), stage(choice.first, end, used, choice.replicas));
      pipeline.fill += pipeline.stages.front().work + pipeline.stages.front().receive;
      end = choice.first;
      used -= choice.replicas;
    }
    return pipeline;
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const DeviceIndex devices_;
  const bool replicate_;
  const NodeIndex nodes_;
  // For each position in the topological order, the sum of the times of all nodes before it.
  // weights_, exchanged_ and outputs_ are the corresponding sums of bytes.
  std::vector<Nanoseconds> work_;
  std::vector<Bytes> weights_, exchanged_, outputs_;
  // For each position, the time to receive the tensors of a stage that begins there.
  std::vector<Nanoseconds> receive_;
  // best_[end][used] is the best last stage if the nodes before `end` form a pipeline on `used`
  // devices.
  std::vector<std::vector<Choice>> best_;
};

}  // namespace

std::optional<Pipeline> plan_pipeline(const CostModel& cost, bool replicate) {
  if (cost.graph().node_count() == 0) return Pipeline{};
  return PipelinePlanner(cost, replicate).run();
}

}  // namespace convoy::partition
