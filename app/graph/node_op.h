// The operation of a node of the step graph: one of the structs that the layers list as their
// Nodes, or one of those below, which belong to no layer. A new layer's row in app/model/op_table.h
// adds its operations here.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "app/model/op_table.h"
#include "kernels/image_ops/image_ops.h"
#include "kernels/mix/mix.h"
#include "kernels/normalise/normalise.h"
#include "kernels/resample/resample.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::app {

CONVOY_NODE(SoftmaxCrossEntropyForward, softmax_cross_entropy_forward, LossProblem);
CONVOY_NODE(SoftmaxCrossEntropyBackward, softmax_cross_entropy_backward, LossProblem);
CONVOY_NODE(MixForward, mix_forward, MixProblem);
CONVOY_NODE(ResampleForward, resample_forward, ResampleProblem);
CONVOY_NODE(ImageOpsForward, image_ops_forward, ImageOpsProblem);
CONVOY_NODE(NormaliseForward, normalise_forward, NormaliseProblem);

// The sum of inputs[0] over the ranks, in place. It has no kernel.
struct AllReduce {
  static constexpr std::string_view kName = "all_reduce";
};

// One end of the way of a tensor, inputs[0] or outputs[0], to another stage of a partitioned step
// (app/model_parallel/stage_programs.h). It has no kernel. Between a beginning and its finish the
// buffer belongs to the transfer.
struct Transfer {
  enum class Action : std::uint8_t { send_begin, send_finish, receive_begin, receive_finish };
  Action action = Action::send_begin;
  int transfer = -1;  // the same number at both ends
  int peer = -1;      // the stage of the other end
  bool begins() const { return action == Action::send_begin || action == Action::receive_begin; }
};

// A part of the way of inputs[0] to host memory, outputs[0], or from there back (compile/
// repeated_runs.h). Until the end of the way out the buffer belongs to the copy.
struct HostCopy {
  enum class Action : std::uint8_t { out_begin, out_finish, back };
  Action action = Action::out_begin;
  kernels::Kernel make(kernels::Backend backend, const kernels::KernelRequest& request) const;
};

using GraphNodes =
    std::tuple<SoftmaxCrossEntropyForward, SoftmaxCrossEntropyBackward, MixForward, ResampleForward,
               ImageOpsForward, NormaliseForward, AllReduce, Transfer, HostCopy>;

namespace detail {
template <typename... Ops>
std::variant<Ops...> variant_of(const std::tuple<Ops...>&);
template <typename... Layers>
auto node_op_of(const std::variant<Layers...>&)
    -> decltype(variant_of(std::tuple_cat(typename Layers::Nodes{}..., GraphNodes{})));
}  // namespace detail

using NodeOp = decltype(detail::node_op_of(std::declval<LayerOp>()));

// Returns the kernel's name, "relu_forward", or "all_reduce", "send_begin", "copy_back" and the
// like.
std::string_view name_of(const NodeOp& op);

// Makes the kernel as kernels/device/kernel.h says. Throws std::logic_error if the operation has
// none.
kernels::Kernel make_kernel(const NodeOp& op, kernels::Backend backend, kernels::KernelRequest& request);

}  // namespace convoy::app
