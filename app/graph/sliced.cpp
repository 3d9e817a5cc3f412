#include "app/graph/sliced.h"

#include <algorithm>
#include <type_traits>

namespace convoy::app {
namespace {

template <typename Op, typename... Ops>
concept OneOf = (std::is_same_v<Op, Ops> || ...);

// Operations that compute every sample of the output from the same sample of the inputs, without
// sums over samples and without the values in StepControl.
template <typename Op>
concept PerSample = OneOf<Op, ReluForward, ReluBackward, ActivationForward, ActivationBackward, PadForward,
                          PadBackward, LocalResponseNormForward, LocalResponseNormBackward, SliceForward,
                          SliceBackward, ChannelShuffleForward, ConcatForward, ConcatBackward, PoolForward,
                          PoolBackward, ReorderForward, BatchNormInference>;

class OnSlice {
 public:
  using Answer = std::optional<NodeOp>;
  explicit OnSlice(const BatchSlice& slice) : slice_(slice) {}

  Answer operator()(const Conv2dForward& op) const {
    if (op.problem.statistics || op.problem.input_affine) return {};
    return of_batch(op);
  }
  Answer operator()(const Conv2dBackwardData& op) const {
    if (op.problem.input_norm) return {};
    return of_batch(op);
  }
  Answer operator()(const Conv2dBackwardWeights& op) const {
    const std::int64_t piece = op.problem.piece, end = slice_.first + slice_.samples;
    if (piece == 0 || slice_.first % piece != 0 || (end % piece != 0 && end != slice_.batch)) return {};
    Conv2dBackwardWeights part = op;
    part.problem.continues = slice_.first > 0;
    return part;
  }
  Answer operator()(const AddForward& op) const {
    if (op.problem.statistics) return {};
    return op;
  }
  template <typename Op>
  Answer operator()(const Op& op) const {
    if constexpr (PerSample<Op>)
      return op;
    else
      return {};
  }

 private:
  template <typename Op>
  Answer of_batch(Op op) const {
    op.problem.batch = slice_.batch;
    return op;
  }

  const BatchSlice& slice_;
};

}  // namespace

std::optional<NodeOp> sliced(const Node& node, const BatchSlice& slice) {
  return std::visit(OnSlice(slice), node.op);
}

bool is_divided(const StepGraph& graph, const Node& node, TensorId operand) {
  const TensorRole role = graph.tensors[static_cast<std::size_t>(operand)].role;
  if (role != TensorRole::activation && role != TensorRole::images) return false;
  return !node.is<Conv2dBackwardWeights>() || std::ranges::find(node.outputs, operand) == node.outputs.end();
}

}  // namespace convoy::app
