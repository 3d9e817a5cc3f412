// Declares NodeOp, the operation of a node of the step graph. NodeOp is a variant of two kinds of
// structs: those that every layer of app/model/op_table.h lists in its type `Nodes`, and the
// structs below, which belong to no layer.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "app/model/op_table.h"
#include "kernels/image_ops/image_ops.h"
#include "kernels/mix/mix.h"
#include "kernels/normalise/normalise.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/resample/resample.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::app {

CONVOY_NODE(SoftmaxCrossEntropyForward, softmax_cross_entropy_forward, LossProblem);
CONVOY_NODE(SoftmaxCrossEntropyBackward, softmax_cross_entropy_backward, LossProblem);
CONVOY_REPEATABLE_NODE(MixForward, mix_forward, MixProblem);
CONVOY_REPEATABLE_NODE(ResampleForward, resample_forward, ResampleProblem);
CONVOY_REPEATABLE_NODE(ImageOpsForward, image_ops_forward, ImageOpsProblem);
CONVOY_REPEATABLE_NODE(NormaliseForward, normalise_forward, NormaliseProblem);

// Updates one parameter: {parameter, gradient, optimizer states, average if there is one} -> {bf16
// copy if there is one}. All inputs but the gradient are updated in place.
CONVOY_NODE(OptimizerUpdate, optimizer_update, OptimizerProblem);

// Sums inputs[0] over the ranks, in place. It has no kernel.
struct AllReduce {
  static constexpr std::string_view kName = "all_reduce";
};

// Begins or finishes a transfer of a tensor to or from another stage of a partitioned step
// (app/model_parallel/stage_programs.h). The tensor is inputs[0] of a send or outputs[0] of a
// receive. Between the node that begins a transfer and the node that finishes it, no other node may
// use the tensor's buffer. A transfer has no kernel.
struct Transfer {
  enum class Action : std::uint8_t { send_begin, send_finish, receive_begin, receive_finish };
  Action action = Action::send_begin;
  int transfer = -1;  // the number of the transfer, the same at both ends
  int peer = -1;      // the stage at the other end
  bool begins() const { return action == Action::send_begin || action == Action::receive_begin; }
};

// Copies a tensor from inputs[0] to outputs[0], to host memory or back (compile/repeated_runs.h). A
// copy to host memory has two nodes, since it runs at the same time as the nodes between them. No
// node may change the tensor's buffer before the second node, out_finish.
struct HostCopy {
  enum class Action : std::uint8_t { out_begin, out_finish, back };
  Action action = Action::out_begin;
  kernels::Kernel make(kernels::Backend backend, const kernels::KernelRequest& request) const;
};

using GraphNodes =
    std::tuple<SoftmaxCrossEntropyForward, SoftmaxCrossEntropyBackward, MixForward, ResampleForward,
               ImageOpsForward, NormaliseForward, OptimizerUpdate, AllReduce, Transfer, HostCopy>;

namespace detail {
template <typename... Ops>
std::variant<Ops...> variant_of(const std::tuple<Ops...>&);
template <typename... Layers>
auto node_op_of(const std::variant<Layers...>&)
    -> decltype(variant_of(std::tuple_cat(typename Layers::Nodes{}..., GraphNodes{})));
}  // namespace detail

using NodeOp = decltype(detail::node_op_of(std::declval<LayerOp>()));

// Returns the name of the operation's kernel, such as "relu_forward". All-reduces, transfers and
// host copies have names such as "all_reduce", "send_begin" and "copy_back".
std::string_view name_of(const NodeOp& op);

// Makes the operation's kernel (kernels/device/kernel.h). Throws std::logic_error if the operation
// has no kernel.
kernels::Kernel make_kernel(const NodeOp& op, kernels::Backend backend, kernels::KernelRequest& request);

}  // namespace convoy::app
