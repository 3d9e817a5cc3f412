#include "app/graph/passes/weight_gradient_pieces.h"

#include <algorithm>
#include <vector>

#include "app/graph/sliced.h"

namespace convoy::app {
namespace {

// The address of the first sample of each piece must be a multiple of this many bytes, because a
// kernel that computes a piece gets this address.
constexpr std::int64_t kAlignment = 16;

class Cut {
 public:
  // Takes the number of samples from the labels, which are [N] in any graph. The images may be
  // stored pixels (device_input.h), whose shape does not give the number of samples.
  Cut(StepGraph& graph, const PieceOptions& options)
      : graph_(graph), batch_(graph.tensors[static_cast<std::size_t>(graph.labels)].shape[0]) {
    std::int64_t most = 0;
    for (const Node& node : graph.nodes)
      if (node.is<Conv2dBackwardWeights>()) most = std::max(most, operand_bytes(node));
    if (most < options.least_bytes) return;
    int pieces = 1;
    while (2 * pieces <= options.most_pieces && (pieces == 1 || most / pieces >= options.least_bytes))
      pieces *= 2;
    least_ = options.least_bytes;
    if (pieces > 1) piece_ = (batch_ + pieces - 1) / pieces;
  }

  void run() {
    if (piece_ == 0 || piece_ == batch_) return;
    std::vector<Conv2dBackwardWeights*> convolutions;
    std::ptrdiff_t first = -1, last = -1;
    // For each tensor: whether the last node that wrote it can run over slices of the batch.
    std::vector<char> sliceable(graph_.tensors.size(), 0);
    for (Node& node : graph_.nodes) {
      if (node.phase != Phase::backward) continue;
      if (auto* op = std::get_if<Conv2dBackwardWeights>(&node.op);
          op != nullptr && !op->problem.input_affine && can_cut(node, sliceable)) {
        if (operand_bytes(node) >= least_) {
          if (first < 0) first = std::ssize(convolutions);
          last = std::ssize(convolutions);
        }
        convolutions.push_back(op);
      }
      const bool slices = sliced(node, {batch_, 0, batch_}).has_value();
      for (const TensorId output : node.outputs) sliceable[static_cast<std::size_t>(output)] = slices;
    }
    for (std::ptrdiff_t i = first; i >= 0 && i <= last; ++i)
      convolutions[static_cast<std::size_t>(i)]->problem.piece = piece_;
  }

 private:
  std::int64_t bytes(TensorId id) const {
    const Tensor& tensor = graph_.tensors[static_cast<std::size_t>(id)];
    return tensor.shape.elements() * static_cast<std::int64_t>(kernels::bytes_of(tensor.dtype));
  }

  std::int64_t operand_bytes(const Node& node) const { return bytes(node.inputs[0]) + bytes(node.inputs[1]); }

  bool can_cut(const Node& node, const std::vector<char>& sliceable) const {
    return sliceable[static_cast<std::size_t>(node.inputs[1])] != 0 &&
           std::ranges::all_of(node.inputs,
                               [&](TensorId id) { return bytes(id) / batch_ * piece_ % kAlignment == 0; });
  }

  StepGraph& graph_;
  const std::int64_t batch_;
  std::int64_t piece_ = 0, least_ = 0;
};

}  // namespace

void cut_weight_gradients(StepGraph& graph, const PieceOptions& options) { Cut(graph, options).run(); }

}  // namespace convoy::app
