#include "app/graph/recomputed.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace convoy::app {
namespace {

template <typename Op>
concept RunsInBackward = Op::kName.find("_backward") != std::string_view::npos;
template <typename Op>
concept RunsAgainAsItIs = requires {
  requires Op::kRepeatable;
};

class SecondRun {
 public:
  using Answer = std::optional<Recomputed>;
  SecondRun(const Node& node, const std::vector<int>& wanted) : node_(node), wanted_(wanted) {}

  Answer operator()(const Conv2dForward& op) const {
    if (!op.problem.statistics) return same();
    Conv2dForward again = op;
    again.problem.sums_known = true;
    return Recomputed{again, false};
  }
  Answer operator()(const AddForward& op) const {
    if (!op.problem.statistics) return same();
    return Recomputed{AddForward{}, false};
  }
  Answer operator()(const BatchNormForward& op) const {
    BatchNormForward again = op;
    again.problem.momentum = 0;  // the first run has already updated the running statistics
    again.problem.relu_mask = op.problem.relu_mask && std::ranges::find(wanted_, 1) != wanted_.end();
    return Recomputed{again, false, again.problem.relu_mask ? std::vector{0, 1} : std::vector{0}};
  }

  template <RunsAgainAsItIs Op>
  Answer operator()(const Op&) const {
    return same();
  }

  // Its output is small and is kept.
  Answer operator()(const BatchNormAffine&) const { return {}; }
  // This operation cannot run twice: its output is summed over the ranks in place, and a second run
  // would undo the sum.
  Answer operator()(const BatchNormStatistics&) const { return {}; }
  // This operation cannot run twice: it would add the samples and the hits to the metrics again.
  Answer operator()(const SoftmaxCrossEntropyForward&) const { return {}; }
  Answer operator()(const OptimizerUpdate&) const { return {}; }
  Answer operator()(const AllReduce&) const { return {}; }
  Answer operator()(const Transfer&) const { return {}; }
  Answer operator()(const HostCopy&) const { return {}; }
  template <RunsInBackward Op>
  Answer operator()(const Op&) const {
    return {};
  }

 private:
  Answer same() const {
    Recomputed again{node_.op, true, std::vector<int>(node_.outputs.size())};
    std::iota(again.outputs.begin(), again.outputs.end(), 0);
    return again;
  }

  const Node& node_;
  const std::vector<int>& wanted_;
};

}  // namespace

std::optional<Recomputed> recomputed(const Node& node, const std::vector<int>& wanted) {
  return std::visit(SecondRun(node, wanted), node.op);
}

}  // namespace convoy::app
