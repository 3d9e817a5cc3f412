#include "app/compile/batch_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "app/graph/sliced.h"

namespace convoy::app {
namespace {

// The operands of kernels must begin at multiples of this many bytes.
constexpr std::int64_t kAlignment = 16;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

std::int64_t batch_of(const StepGraph& graph) { return graph.tensors[at(graph.labels)].shape[0]; }

bool has_weights(const Node& node) { return node.is<Conv2dForward>() || node.is<LinearForward>(); }

// Returns a kernel that runs `kernel` on a slice of larger tensors. It adds `inputs[i]` bytes to
// the address of input i, and `outputs[i]` bytes to the address of output i. It does not pass on
// inputs beyond the size of `inputs`.
kernels::Kernel moved(kernels::Kernel kernel, std::vector<std::int64_t> inputs,
                      std::vector<std::int64_t> outputs) {
  const auto is_zero = [](std::int64_t bytes) { return bytes == 0; };
  if (std::ranges::all_of(inputs, is_zero) && std::ranges::all_of(outputs, is_zero)) return kernel;
  kernel.bind = [bind = std::move(kernel.bind), inputs = std::move(inputs),
                 outputs = std::move(outputs)](const kernels::Operands& operands) {
    const auto shifted = [](std::span<void* const> addresses, const std::vector<std::int64_t>& bytes) {
      std::vector<void*> result;
      for (std::size_t i = 0; i < bytes.size(); ++i)
        result.push_back(static_cast<std::uint8_t*>(addresses[i]) + bytes[i]);
      return result;
    };
    const std::vector<void*> in = shifted(operands.inputs, inputs), out = shifted(operands.outputs, outputs);
    kernels::Operands own = operands;
    own.inputs = in;
    own.outputs = out;
    return bind(own);
  };
  return kernel;
}

class Slicer {
 public:
  Slicer(const CompiledGraph& step, const std::set<std::string>& layers, std::int64_t samples,
         kernels::Backend backend)
      : step_(step),
        backend_(backend),
        batch_(batch_of(step.graph)),
        samples_(samples),
        graph_(step.graph),
        descs_(step.descs) {
    graph_.nodes.clear();
    for (const Node& node : step.graph.nodes)
      slices_.push_back(layers.contains(node.layer) && can_slice(node));
    find_parts();
  }

  SlicedStep run() {
    const auto& nodes = step_.graph.nodes;
    for (std::size_t node = 0; node < nodes.size();) {
      if (!slices_[node]) {
        append(nodes[node], step_.kernels[node], node, 1);
        ++node;
        continue;
      }
      std::size_t end = node;
      while (end < nodes.size() && slices_[end]) ++end;
      for (std::int64_t first = 0; first < batch_; first += samples_)
        for (std::size_t i = node; i < end; ++i)
          append_slice(i, {batch_, first, std::min(samples_, batch_ - first)});
      node = end;
    }
    result_.step = assign_buffers(std::move(graph_), std::move(descs_), std::move(kernels_));
    return std::move(result_);
  }

 private:
  bool can_slice(const Node& node) const {
    for (std::int64_t first = 0; first < batch_; first += samples_)
      if (!sliced(node, {batch_, first, std::min(samples_, batch_ - first)})) return false;
    for (const auto* operands : {&node.inputs, &node.outputs})
      for (const TensorId id : *operands) {
        if (!is_divided(step_.graph, node, id)) continue;
        const kernels::TensorDesc& desc = step_.descs[at(id)];
        if (desc.shape[0] != batch_ || sample_bytes(id) * samples_ % kAlignment != 0) return false;
      }
    return true;
  }

  std::int64_t sample_bytes(TensorId id) const {
    return static_cast<std::int64_t>(step_.descs[at(id)].bytes()) / batch_;
  }

  // Finds the activations that only nodes running in slices read or write. One smaller tensor per
  // slice replaces such an activation. parts_ lists these tensors.
  void find_parts() {
    parts_.resize(step_.descs.size());
    std::vector<int> writers(step_.descs.size(), 0);
    std::vector<char> whole(step_.descs.size(), 0);
    for (std::size_t i = 0; i < step_.graph.nodes.size(); ++i) {
      const Node& node = step_.graph.nodes[i];
      for (const auto* operands : {&node.inputs, &node.outputs})
        for (const TensorId id : *operands)
          if (!slices_[i] || !is_divided(step_.graph, node, id)) whole[at(id)] = 1;
      for (const TensorId id : node.outputs) ++writers[at(id)];
    }
    for (std::size_t id = 0; id < whole.size(); ++id) {
      if (whole[id] || writers[id] != 1 || step_.graph.tensors[id].role != TensorRole::activation) continue;
      for (std::int64_t first = 0; first < batch_; first += samples_) {
        Tensor part = step_.graph.tensors[id];
        part.name += fmt::format("/slice{}", first / samples_);
        part.shape[0] = std::min(samples_, batch_ - first);
        part.same_layout_as = part.slice_of = static_cast<TensorId>(id);
        kernels::TensorDesc desc = step_.descs[id];
        desc.shape[0] = part.shape[0];
        parts_[id].push_back(static_cast<TensorId>(graph_.tensors.size()));
        graph_.tensors.push_back(std::move(part));
        descs_.push_back(std::move(desc));
      }
    }
  }

  void append(Node node, kernels::Kernel kernel, std::size_t origin, double share) {
    graph_.nodes.push_back(std::move(node));
    kernels_.push_back(std::move(kernel));
    result_.origin.push_back(static_cast<int>(origin));
    result_.share.push_back(share);
  }

  void append_slice(std::size_t number, const BatchSlice& slice) {
    const Node& whole = step_.graph.nodes[number];
    Node node = whole;
    node.op = *sliced(whole, slice);
    node.slice = static_cast<int>(slice.first / samples_);
    const double share = static_cast<double>(slice.samples) / static_cast<double>(batch_);
    node.flops = whole.flops * share;
    std::vector<std::int64_t> in, out;
    for (TensorId& id : node.inputs) in.push_back(take_part(whole, id, slice));
    for (TensorId& id : node.outputs) out.push_back(take_part(whole, id, slice));
    // If an output is not split into one tensor per slice, all slices write into the same tensor.
    // Every slice after the first then updates existing content, so the tensor becomes an input,
    // too.
    for (std::size_t i = 0; i < node.outputs.size() && slice.first > 0; ++i) {
      if (!parts_[at(whole.outputs[i])].empty()) continue;
      node.inputs.push_back(node.outputs[i]);
      in.push_back(0);
    }
    kernels::Kernel kernel = kernel_of(number, node, slice);
    if (!node.is<Conv2dBackwardWeights>() && in.size() > whole.inputs.size()) in.resize(whole.inputs.size());
    append(std::move(node), moved(std::move(kernel), std::move(in), std::move(out)), number, share);
  }

  // If the tensor is split into one tensor per slice, replaces `id` by the tensor of this slice and
  // returns 0. Otherwise returns the offset of the slice in the tensor, in bytes. The offset is 0
  // if the tensor has no batch dimension.
  std::int64_t take_part(const Node& whole, TensorId& id, const BatchSlice& slice) const {
    if (!parts_[at(id)].empty()) {
      id = parts_[at(id)][at(static_cast<int>(slice.first / samples_))];
      return 0;
    }
    return is_divided(step_.graph, whole, id) ? slice.first * sample_bytes(id) : 0;
  }

  // Returns the kernel of a slice. Slices of the same size share a kernel. Only for a gradient of
  // weights, the first slice has a kernel of its own, because the later slices add to its result.
  // Kernel::in_place lists pairs of operands that may share a buffer. Only pairs whose tensors are
  // both split into one tensor per slice stay in the list.
  kernels::Kernel kernel_of(std::size_t number, const Node& node, const BatchSlice& slice) {
    const bool continues = slice.first > 0 && node.is<Conv2dBackwardWeights>();
    const auto key = std::tuple(number, slice.samples, continues);
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    const Node& whole = step_.graph.nodes[number];
    kernels::KernelRequest request;
    const auto describe = [&](TensorId id) {
      kernels::TensorDesc desc = step_.descs[at(id)];
      if (is_divided(step_.graph, whole, id)) desc.shape[0] = slice.samples;
      return desc;
    };
    for (const TensorId id : whole.inputs) request.inputs.push_back(describe(id));
    if (continues)
      for (const TensorId id : whole.outputs) request.inputs.push_back(describe(id));
    for (const TensorId id : whole.outputs) request.outputs.push_back(describe(id));
    kernels::Kernel kernel = make_kernel(node.op, backend_, request);
    std::erase_if(kernel.in_place, [&](const std::pair<int, int>& pair) {
      return pair.first >= std::ssize(whole.inputs) || parts_[at(whole.inputs[at(pair.first)])].empty() ||
             parts_[at(whole.outputs[at(pair.second)])].empty();
    });
    return made_.emplace(key, std::move(kernel)).first->second;
  }

  const CompiledGraph& step_;
  const kernels::Backend backend_;
  const std::int64_t batch_, samples_;
  StepGraph graph_;
  std::vector<kernels::TensorDesc> descs_;
  std::vector<kernels::Kernel> kernels_;
  std::vector<char> slices_;                  // for each node: whether it runs over slices of the batch
  std::vector<std::vector<TensorId>> parts_;  // for each tensor: its tensors per slice; empty if whole
  std::map<std::tuple<std::size_t, std::int64_t, bool>, kernels::Kernel> made_;
  SlicedStep result_;
};

}  // namespace

SlicedLayers layers_to_slice(const CompiledGraph& train) {
  SlicedLayers layers;
  std::set<std::string> cut;
  for (const Node& node : train.graph.nodes)
    if (const auto* op = std::get_if<Conv2dBackwardWeights>(&node.op);
        op != nullptr && op->problem.piece > 0) {
      cut.insert(node.layer);
      layers.samples = op->problem.piece;
    }
  std::vector<const Node*> forward;
  for (const Node& node : train.graph.nodes)
    if (node.phase == Phase::forward) forward.push_back(&node);
  const std::int64_t batch = batch_of(train.graph);
  const auto of_cut = [&](const Node* node) { return cut.contains(node->layer); };
  const auto joins = [&](const Node* node) {
    return !has_weights(*node) && sliced(*node, {batch, 0, batch}).has_value();
  };
  auto first = std::ranges::find_if(forward, of_cut);
  auto end = std::find_if(forward.rbegin(), forward.rend(), of_cut).base();
  if (first == forward.end()) return layers;
  while (first != forward.begin() && joins(*(first - 1))) --first;
  while (end != forward.end() && joins(*end)) ++end;
  for (; first != end; ++first) layers.names.insert((*first)->layer);
  return layers;
}

std::optional<SlicedStep> in_slices(const CompiledGraph& step, const std::set<std::string>& layers,
                                    std::int64_t samples, kernels::Backend backend) {
  try {
    return Slicer(step, layers, samples, backend).run();
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace convoy::app
