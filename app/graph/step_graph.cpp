#include "app/graph/step_graph.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "kernels/device/device_memory.h"

namespace convoy::app {

std::string_view name_of(const NodeOp& op) {
  return std::visit(
      []<typename Op>(const Op& of) -> std::string_view {
        if constexpr (std::is_same_v<Op, Transfer>) {
          constexpr std::string_view kNames[] = {"send_begin", "send_finish", "receive_begin",
                                                 "receive_finish"};
          return kNames[static_cast<std::size_t>(of.action)];
        } else if constexpr (std::is_same_v<Op, HostCopy>) {
          constexpr std::string_view kNames[] = {"copy_out", "copied_out", "copy_back"};
          return kNames[static_cast<std::size_t>(of.action)];
        } else {
          return Op::kName;
        }
      },
      op);
}

kernels::Kernel make_kernel(const NodeOp& op, kernels::Backend backend, kernels::KernelRequest& request) {
  return std::visit(
      [&](const auto& of) -> kernels::Kernel {
        if constexpr (requires { of.make(backend, request); })
          return of.make(backend, request);
        else
          throw std::logic_error("an operation without a kernel");
      },
      op);
}

kernels::Kernel HostCopy::make(kernels::Backend backend, const kernels::KernelRequest& request) const {
  kernels::Kernel kernel;
  if (action == Action::out_finish) {
    kernel.bind = [](const kernels::Operands&) { return [](kernels::Stream) {}; };
    return kernel;
  }
  kernel.bind = [backend, bytes = request.inputs[0].bytes()](const kernels::Operands& operands) {
    return [=, to = operands.outputs[0], from = operands.inputs[0]](kernels::Stream stream) {
      kernels::copy(backend, to, from, bytes, stream);
    };
  };
  return kernel;
}

std::string_view Node::name() const {
  if (!recompute) return name_of(op);
  return std::visit(
      []<typename Op>(const Op&) -> std::string_view {
        if constexpr (requires { Op::kRecomputedName; })
          return Op::kRecomputedName;
        else
          throw std::logic_error("a node that cannot be computed again");
      },
      op);
}

bool StepGraph::updates(const Node& node, TensorId input) const {
  const TensorRole role = tensors[static_cast<std::size_t>(input)].role;
  if (node.is<OptimizerUpdate>()) return role == TensorRole::parameter || role == TensorRole::optimizer_state;
  return node.is<AllReduce>() || (role == TensorRole::state && !node.is<BatchNormInference>());
}

std::vector<int> StepGraph::parameters_by_gradient() const {
  std::vector<std::size_t> finished(tensors.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const TensorId output : nodes[i].outputs) finished[output] = i;
  std::vector<int> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int index) {
    const TensorId gradient = parameters[index].gradient;
    return gradient < 0 ? nodes.size() : finished[gradient];
  });
  return order;
}

}  // namespace convoy::app
