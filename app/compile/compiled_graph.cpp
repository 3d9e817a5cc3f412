#include "app/compile/compiled_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "partition/memory/arena_offsets.h"

namespace convoy::app {
namespace {

using kernels::Layout;
using kernels::TensorDesc;

// The arena is the memory of all buffers. A reuse delay (see compile_graph()) makes it larger. The
// delay may add this many bytes, or 1/32 of the arena if that is more.
constexpr std::int64_t kLittle = 128 << 20;
// In an arena above this many bytes, the reuse delay is at most kReuseDelay.
constexpr std::int64_t kSmallArena = 512 << 20;

std::size_t index(TensorId tensor) { return static_cast<std::size_t>(tensor); }

class Compilation {
 public:
  Compilation(StepGraph graph, kernels::Backend backend, int reuse_delay)
      : backend_(backend), reuse_delay_(reuse_delay) {
    compiled_.graph = std::move(graph);
  }

  CompiledGraph run(const std::map<std::string, TensorDesc>& parameter_layouts) {
    for (const Tensor& tensor : compiled_.graph.tensors)
      compiled_.descs.push_back(initial_desc(tensor, parameter_layouts));
    for (Node& node : std::exchange(compiled_.graph.nodes, {})) append(std::move(node));
    for (TensorDesc& desc : compiled_.descs)
      if (desc.layout == Layout::any) desc.layout = Layout::row_major;
    lay_out_as_copies();
    return plan_buffers();
  }

  CompiledGraph run(std::vector<TensorDesc> descs, std::vector<kernels::Kernel> kernels) {
    compiled_.descs = std::move(descs);
    compiled_.kernels = std::move(kernels);
    return plan_buffers();
  }

 private:
  CompiledGraph plan_buffers() {
    find_buffers();
    assign_addresses();
    assign_host_memory();
    return std::move(compiled_);
  }

  const Tensor& tensor(TensorId id) const { return compiled_.graph.tensors[index(id)]; }

  TensorDesc initial_desc(const Tensor& tensor,
                          const std::map<std::string, TensorDesc>& parameter_layouts) const {
    const bool parameter = tensor.role == TensorRole::parameter || tensor.role == TensorRole::parameter_copy;
    if (parameter)
      if (const auto known = parameter_layouts.find(tensor.name); known != parameter_layouts.end())
        return {tensor.dtype, tensor.shape, known->second.layout, known->second.opaque};
    if (tensor.role == TensorRole::images && tensor.shape.rank() == 4 && backend_ == kernels::Backend::cuda)
      return {tensor.dtype, tensor.shape, Layout::channels_last, nullptr};
    const bool open = parameter ? tensor.shape.rank() > 1
                      : tensor.role == TensorRole::gradient
                          ? true
                          : tensor.role == TensorRole::activation && tensor.shape.rank() == 4;
    return {tensor.dtype, tensor.shape, open ? Layout::any : Layout::row_major, nullptr};
  }

  // Gives every parameter that has a bf16 copy the layout of the copy. So the optimizer can write
  // element i of both at the same time.
  void lay_out_as_copies() {
    for (const GraphParameter& parameter : compiled_.graph.parameters) {
      if (parameter.copy < 0) continue;
      compiled_.descs[index(parameter.tensor)].layout = compiled_.descs[index(parameter.copy)].layout;
      compiled_.descs[index(parameter.tensor)].opaque = compiled_.descs[index(parameter.copy)].opaque;
    }
  }

  // Gives a gradient that has no layout yet the layout of the tensor that it is the gradient of.
  void adopt_partner_layout(TensorId id) {
    TensorDesc& desc = compiled_.descs[index(id)];
    const TensorId other = tensor(id).same_layout_as;
    if (desc.layout != Layout::any || other < 0) return;
    desc.layout = compiled_.descs[index(other)].layout;
    desc.opaque = compiled_.descs[index(other)].opaque;
  }

  // Appends the node with its kernel. If no kernel accepts the different layouts of the node's
  // 4-dimensional tensors, first appends nodes that copy the inputs to one layout, and gives the
  // outputs this layout, too.
  void append(Node node) {
    if (node.is<AllReduce>()) return push(std::move(node), {});
    for (const TensorId output : node.outputs) adopt_partner_layout(output);
    try {
      try {
        push(node, make_kernel(node));
      } catch (const std::invalid_argument&) {
        if (!unify_layouts(node)) throw;
        push(node, make_kernel(node));
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("layer {}, {} on {}: {}", node.layer, node.name(),
                                           kernels::name_of(backend_), error.what()));
    }
  }

  void push(Node node, kernels::Kernel kernel) {
    compiled_.graph.nodes.push_back(std::move(node));
    compiled_.kernels.push_back(std::move(kernel));
  }

  kernels::Kernel make_kernel(const Node& node) {
    kernels::KernelRequest request;
    for (const TensorId input : node.inputs) request.inputs.push_back(compiled_.descs[index(input)]);
    for (const TensorId output : node.outputs) request.outputs.push_back(compiled_.descs[index(output)]);
    kernels::Kernel kernel = app::make_kernel(node.op, backend_, request);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      compiled_.descs[index(node.inputs[i])] = request.inputs[i];
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      compiled_.descs[index(node.outputs[i])] = request.outputs[i];
    return kernel;
  }

  bool is_image(TensorId id) const {
    return inside_step(id) && tensor(id).shape.rank() == 4 &&
           compiled_.descs[index(id)].layout != Layout::opaque;
  }
  bool can_reorder(TensorId id) const {
    return is_image(id) &&
           (tensor(id).dtype == kernels::DType::f32 || tensor(id).dtype == kernels::DType::bf16);
  }

  // Returns the layout that all 4-dimensional tensors of the node should get. If an input cannot be
  // reordered, such as the indices of a max pool, this is the layout of that input. Otherwise it is
  // the layout of the first 4-dimensional input.
  Layout common_layout(const Node& node) const {
    Layout common = Layout::any;
    for (const TensorId input : node.inputs) {
      if (!is_image(input)) continue;
      if (!can_reorder(input)) return compiled_.descs[index(input)].layout;
      if (common == Layout::any) common = compiled_.descs[index(input)].layout;
    }
    return common;
  }

  // Gives all 4-dimensional tensors of the node the same layout. Returns false if nothing changes.
  bool unify_layouts(Node& node) {
    const Layout common = common_layout(node);
    if (common == Layout::any) return false;
    const auto differs = [&](TensorId id) {
      return can_reorder(id) && compiled_.descs[index(id)].layout != common;
    };
    bool changed = false;
    for (TensorId& input : node.inputs)
      if (differs(input)) {
        input = append_reorder(node, input, common);
        changed = true;
      }
    // Give the outputs the common layout, too, even if an output has already taken the layout of
    // the tensor that it is the gradient of. A later reader may then need a copy.
    for (const TensorId output : node.outputs)
      if (differs(output)) {
        compiled_.descs[index(output)].layout = common;
        changed = true;
      }
    return changed;
  }

  TensorId append_reorder(const Node& reader, TensorId from, Layout layout) {
    const auto copy = static_cast<TensorId>(compiled_.graph.tensors.size());
    const Tensor source = tensor(from);
    compiled_.graph.tensors.push_back(
        {source.name + "/reordered", TensorRole::activation, source.dtype, source.shape});
    compiled_.descs.push_back({source.dtype, source.shape, layout, nullptr});
    const Node node{reader.layer, ReorderForward{}, reader.phase, {from}, {copy}};
    push(node, make_kernel(node));
    return copy;
  }

  bool inside_step(TensorId id) const { return tensor(id).role == TensorRole::activation; }

  // Finds the buffers of the tensors and during which nodes each buffer is in use. The input and
  // the output of a kernel that works in place share a buffer.
  void find_buffers() {
    const auto& nodes = compiled_.graph.nodes;
    buffer_of_.resize(compiled_.descs.size());
    first_.assign(compiled_.descs.size(), -1);
    last_.assign(compiled_.descs.size(), -1);
    for (std::size_t id = 0; id < buffer_of_.size(); ++id) buffer_of_[id] = static_cast<TensorId>(id);
    for (int time = 0; time < std::ssize(nodes); ++time)
      for (const auto* operands :
           {&nodes[static_cast<std::size_t>(time)].inputs, &nodes[static_cast<std::size_t>(time)].outputs})
        for (const TensorId id : *operands) {
          if (first_[index(id)] < 0) first_[index(id)] = time;
          last_[index(id)] = time;
        }
    if (const TensorId kept = compiled_.graph.probabilities; kept >= 0)
      last_[index(kept)] = static_cast<int>(std::ssize(nodes)) - 1;
    for (int time = 0; time < std::ssize(nodes); ++time) {
      const auto at = static_cast<std::size_t>(time);
      for (const auto& [input, output] : overwritten_inputs(nodes[at], compiled_.kernels[at]))
        share_buffer(input, output, time);
    }
  }

  // Lets the output use the input's buffer if both have the same size and no later node reads a
  // tensor in that buffer.
  void share_buffer(TensorId input, TensorId output, int time) {
    if (!inside_step(input) || !inside_step(output)) return;
    const TensorId buffer = buffer_of_[index(input)];
    const bool free_after = last_[index(buffer)] == time && first_[index(output)] == time;
    if (!free_after || buffer_of_[index(output)] != output) return;
    if (compiled_.descs[index(buffer)].bytes() != compiled_.descs[index(output)].bytes()) return;
    buffer_of_[index(output)] = buffer;
    last_[index(buffer)] = last_[index(output)];
  }

  // Assigns offsets to buffers so that `reuse_delay` nodes pass before a freed buffer is reused.
  // Halves the delay until the arena is not much larger than without a delay.
  partition::ArenaOffsets offsets_of(const std::vector<partition::BufferLifetime>& lifetimes) const {
    partition::ArenaOffsets tight = partition::assign_offsets(lifetimes);
    const std::int64_t most = tight.bytes + std::max(tight.bytes / 32, kLittle);
    const auto end = static_cast<std::int64_t>(compiled_.kernels.size()) - 1;
    const int longest = tight.bytes > kSmallArena ? std::min(reuse_delay_, kReuseDelay) : reuse_delay_;
    for (int reuse_delay = longest; reuse_delay > 0; reuse_delay /= 2) {
      std::vector<partition::BufferLifetime> longer = lifetimes;
      for (partition::BufferLifetime& lifetime : longer)
        lifetime.last = std::min(lifetime.last + reuse_delay, end);
      partition::ArenaOffsets plan = partition::assign_offsets(longer);
      if (plan.bytes <= most) return plan;
    }
    return tight;
  }

  void assign_addresses() {
    std::vector<partition::BufferLifetime> lifetimes;
    std::vector<std::int64_t*> destination;
    compiled_.tensor_offset.assign(compiled_.descs.size(), -1);
    compiled_.workspace_offset.assign(compiled_.kernels.size(), -1);
    for (std::size_t id = 0; id < compiled_.descs.size(); ++id) {
      if (!inside_step(static_cast<TensorId>(id)) || buffer_of_[id] != static_cast<TensorId>(id) ||
          first_[id] < 0)
        continue;
      lifetimes.push_back({static_cast<std::int64_t>(compiled_.descs[id].bytes()), first_[id], last_[id]});
      destination.push_back(&compiled_.tensor_offset[id]);
    }
    for (std::size_t node = 0; node < compiled_.kernels.size(); ++node) {
      const std::size_t bytes = compiled_.kernels[node].workspace_bytes;
      if (bytes == 0) continue;
      const auto time = static_cast<std::int64_t>(node);
      lifetimes.push_back({static_cast<std::int64_t>(bytes), time, time});
      destination.push_back(&compiled_.workspace_offset[node]);
    }
    const partition::ArenaOffsets plan = offsets_of(lifetimes);
    for (std::size_t i = 0; i < destination.size(); ++i) *destination[i] = plan.offset[i];
    for (std::size_t id = 0; id < compiled_.descs.size(); ++id)
      if (inside_step(static_cast<TensorId>(id)))
        compiled_.tensor_offset[id] = compiled_.tensor_offset[index(buffer_of_[id])];
    compiled_.activation_bytes = plan.bytes;
  }

  // Gives every tensor that is copied to host memory an offset there. No two tensors can share host
  // memory, since all of them are there while the loss is computed.
  void assign_host_memory() {
    constexpr std::int64_t kAlignment = 256;
    compiled_.host_bytes = 0;
    compiled_.host_offset.assign(compiled_.descs.size(), -1);
    for (std::size_t id = 0; id < compiled_.descs.size(); ++id) {
      if (tensor(static_cast<TensorId>(id)).role != TensorRole::host) continue;
      const auto bytes = static_cast<std::int64_t>(compiled_.descs[id].bytes());
      compiled_.host_offset[id] = compiled_.host_bytes;
      compiled_.host_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
  }

  kernels::Backend backend_;
  int reuse_delay_;
  CompiledGraph compiled_;
  std::vector<TensorId> buffer_of_;
  std::vector<int> first_, last_;  // for each buffer: the first and the last node that uses it
};

}  // namespace

CompiledGraph compile_graph(StepGraph graph, kernels::Backend backend,
                            const std::map<std::string, TensorDesc>& parameter_layouts, int reuse_delay) {
  return Compilation(std::move(graph), backend, reuse_delay).run(parameter_layouts);
}

std::vector<std::pair<TensorId, TensorId>> overwritten_inputs(const Node& node,
                                                              const kernels::Kernel& kernel) {
  std::vector<std::pair<TensorId, TensorId>> pairs;
  for (const auto& [input, output] : kernel.in_place) {
    const TensorId id = node.inputs[static_cast<std::size_t>(input)];
    if (std::ranges::count(node.inputs, id) == 1)
      pairs.emplace_back(id, node.outputs[static_cast<std::size_t>(output)]);
  }
  return pairs;
}

CompiledGraph assign_buffers(StepGraph graph, std::vector<TensorDesc> descs,
                             std::vector<kernels::Kernel> kernels, int reuse_delay) {
  return Compilation(std::move(graph), kernels::Backend::cpu, reuse_delay)
      .run(std::move(descs), std::move(kernels));
}

std::map<std::string, kernels::TensorDesc> parameter_layouts(const CompiledGraph& compiled) {
  std::map<std::string, kernels::TensorDesc> layouts;
  for (const GraphParameter& parameter : compiled.graph.parameters)
    layouts[parameter.spec.name] = compiled.descs[static_cast<std::size_t>(parameter.tensor)];
  return layouts;
}

}  // namespace convoy::app
