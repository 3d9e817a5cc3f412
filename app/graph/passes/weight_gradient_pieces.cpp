#include "app/graph/passes/weight_gradient_pieces.h"

#include <algorithm>
#include <vector>

#include "app/graph/sliced.h"

namespace convoy::app {
namespace {

// Operands that a kernel reads from a sample on must begin at multiples of these bytes.
constexpr std::int64_t kAlignment = 16;

class Cut {
 public:
  Cut(StepGraph& graph, const PieceOptions& options)
      : graph_(graph), batch_(graph.tensors[static_cast<std::size_t>(graph.images)].shape[0]) {
    const std::int64_t pieces = std::min<std::int64_t>(options.pieces, batch_);
    piece_ = pieces > 1 ? (batch_ + pieces - 1) / pieces : 0;
    least_ = std::max(options.least_bytes, static_cast<std::int64_t>(options.share * double(kept_bytes())));
  }

  void run() {
    if (piece_ == 0) return;
    std::vector<Conv2dBackwardWeights*> convolutions;
    std::ptrdiff_t first = -1, last = -1;
    std::vector<char> sliceable(graph_.tensors.size(), 0);  // by tensor: whether a sliced node wrote it
    for (Node& node : graph_.nodes) {
      if (node.phase != Phase::backward) continue;
      if (auto* op = std::get_if<Conv2dBackwardWeights>(&node.op);
          op != nullptr && can_cut(node, sliceable)) {
        if (bytes(node.inputs[0]) + bytes(node.inputs[1]) >= least_) {
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

  // Returns the bytes of the activations that forward leaves for backward.
  std::int64_t kept_bytes() const {
    std::vector<char> counts(graph_.tensors.size(), 0);
    std::int64_t sum = 0;
    for (const Node& node : graph_.nodes)
      if (node.phase == Phase::forward) {
        for (const TensorId id : node.outputs) counts[static_cast<std::size_t>(id)] = 1;
      } else {
        for (const TensorId id : node.inputs)
          if (std::exchange(counts[static_cast<std::size_t>(id)], 0)) sum += bytes(id);
      }
    return sum;
  }

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
