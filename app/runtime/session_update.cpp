// What comes behind backward: clipping and the update of the flat buffers.
#include <algorithm>

#include "app/runtime/session.h"
#include "kernels/device/device_memory.h"
#include "kernels/reorder/reorder.h"

namespace convoy::app {
namespace {

kernels::TensorDesc vector_of(kernels::DType type, std::int64_t elements) {
  return {type, {elements}, kernels::Layout::row_major, nullptr};
}

}  // namespace

std::size_t Session::Update::workspace_bytes() const {
  std::size_t most = norm.workspace_bytes;
  for (const Part& part : parts) most = std::max(most, part.kernel.workspace_bytes);
  return most;
}

// Where gradients are final when backward has them, and no norm over all of them is asked for. LARS keeps the norms of its
// segments in a workspace, whose place belongs to the activations until backward is over.
bool Session::updates_early() const {
  return options_.backend == kernels::Backend::cuda && options_.lanes > 1 && ranks_.size() == 1 &&
         options_.clip_gradient_norm == 0 && options_.optimizer.kind != kernels::OptimizerKind::lars;
}

Session::Update Session::make_update(const FlatLayout& flat) const {
  constexpr std::int64_t kMostParts = 8, kLeastElements = 1 << 19;  // each launch costs some microseconds
  const kernels::TensorDesc buffer = vector_of(kernels::DType::f32, flat.elements);
  const std::int64_t size =
      updates_early() ? std::max(flat.elements / kMostParts, kLeastElements) : flat.elements + 1;
  Update made;
  for (std::size_t first = 0, last = 0; first < flat.segments.size(); first = last) {
    kernels::OptimizerProblem problem = options_.optimizer;
    for (std::int64_t elements = 0; last < flat.segments.size() && elements < size; ++last) {
      problem.segments.push_back(flat.segments[last]);
      elements += flat.segments[last].count;
    }
    kernels::KernelRequest request{{buffer, buffer}, {}, control_};
    for (int state = 0; state < kernels::optimizer_states(problem); ++state) request.inputs.push_back(buffer);
    if (options_.precision == Precision::bf16)
      request.outputs.push_back(vector_of(kernels::DType::bf16, flat.elements));
    made.parts.push_back({kernels::optimizer_update(options_.backend, problem, request), first, last - 1});
  }
  kernels::KernelRequest norm{{buffer}, {vector_of(kernels::DType::f64, 1)}, control_};
  kernels::KernelRequest clip{norm.outputs, {vector_of(kernels::DType::f32, 1)}, control_};
  made.norm = kernels::squared_norm(options_.backend, {}, norm);
  made.clip = kernels::clip_scale(options_.backend, {options_.clip_gradient_norm}, clip);
  return made;
}

// The last node that touches a parameter, its copy or its gradient, for every part; nothing where the update comes at
// the end anyway.
std::vector<std::size_t> Session::last_uses(const PreparedGraph& prepared, const Update& update) const {
  if (!updates_early()) return {};
  std::vector<std::size_t> part_of(prepared.graph.tensors.size(), update.parts.size());
  for (std::size_t part = 0; part < update.parts.size(); ++part)
    for (std::size_t segment = update.parts[part].first_segment; segment <= update.parts[part].last_segment;
         ++segment) {
      const auto index = static_cast<std::size_t>(memory_->segment_parameter()[segment]);
      const TrainableParameter& parameter = prepared.graph.parameters[index];
      for (const TensorId id : {parameter.tensor, parameter.gradient, parameter.copy})
        if (id >= 0) part_of[static_cast<std::size_t>(id)] = part;
    }
  std::vector<std::size_t> last(update.parts.size(), 0);
  for (std::size_t node = 0; node < prepared.graph.nodes.size(); ++node)
    for (const auto* operands : {&prepared.graph.nodes[node].inputs, &prepared.graph.nodes[node].outputs})
      for (const TensorId id : *operands)
        if (const std::size_t part = part_of[static_cast<std::size_t>(id)]; part < last.size())
          last[part] = node;
  return last;
}

void Session::append_update(Program& program, const Update& update) {
  if (updates_early()) return;  // bind() has put the parts where they belong
  if (buckets_ != nullptr) {
    Instruction wait{"gradients", "wait_buckets", nullptr};
    wait.writes.push_back(flat(memory_->flat_gradients()));
    append_communication(program, std::move(wait),
                         [this](kernels::Stream stream) { buckets_->wait_all(stream); });
  }
  if (options_.clip_gradient_norm > 0) append_clipping(program, update);
  for (const Update::Part& part : update.parts) append_part(program, part);
}

void Session::append_part(Program& program, const Update::Part& part) {
  std::vector<void*> inputs{memory_->flat_parameters(), memory_->flat_gradients()}, outputs;
  const int states = kernels::optimizer_states(options_.optimizer);
  for (int state = 0; state < states; ++state) inputs.push_back(memory_->flat_optimizer_state(state));
  if (memory_->flat_copy() != nullptr) outputs.push_back(memory_->flat_copy());
  Instruction instruction{"parameters", "optimizer_update",
                          part.kernel.bind({inputs, outputs, memory_->update_workspace()})};
  const kernels::ParameterSegment &first = memory_->segments()[part.first_segment],
                                  &last = memory_->segments()[part.last_segment];
  const auto slice = [&](void* buffer, std::int64_t element_bytes) -> MemoryRange {
    return {static_cast<std::byte*>(buffer) + first.offset * element_bytes,
            (last.offset + last.count - first.offset) * element_bytes};
  };
  for (void* buffer : inputs) instruction.writes.push_back(slice(buffer, sizeof(float)));
  for (void* copy : outputs) instruction.writes.push_back(slice(copy, sizeof(std::uint16_t)));
  // All but the gradients and the copy are read and written.
  for (const MemoryRange& range : instruction.writes) instruction.bytes += 2 * range.bytes;
  instruction.bytes -= instruction.writes[1].bytes;
  for (std::size_t i = inputs.size(); i < instruction.writes.size(); ++i)
    instruction.bytes -= instruction.writes[i].bytes;
  if (options_.clip_gradient_norm > 0) instruction.reads.push_back({gradient_scale(), sizeof(float)});
  if (part.kernel.workspace_bytes > 0)
    instruction.writes.push_back(
        {memory_->update_workspace(), static_cast<std::int64_t>(part.kernel.workspace_bytes)});
  program.add(std::move(instruction));
}

void Session::append_clipping(Program& program, const Update& kernels) {
  const std::vector<void*> gradients{memory_->flat_gradients()}, squares{memory_->gradient_norm()},
      scale{gradient_scale()};
  Instruction norm{"gradients", "squared_norm",
                   kernels.norm.bind({gradients, squares, memory_->update_workspace()})};
  norm.reads = {flat(memory_->flat_gradients())};
  norm.bytes = norm.reads[0].bytes;
  norm.writes = {{memory_->gradient_norm(), sizeof(double)},
                 {memory_->update_workspace(), static_cast<std::int64_t>(kernels.norm.workspace_bytes)}};
  program.add(std::move(norm));
  Instruction clip{"gradients", "clip_scale", kernels.clip.bind({squares, scale, nullptr})};
  clip.reads = {{memory_->gradient_norm(), sizeof(double)}};
  clip.writes = {{gradient_scale(), sizeof(float)}};
  program.add(std::move(clip));
}

float* Session::gradient_scale() const { return &control_->gradient_scale; }

void Session::refresh_copies() {
  copies_are_stale_ = false;
  if (memory_->flat_copy() == nullptr) return;
  const std::int64_t elements = memory_->flat_elements();
  kernels::KernelRequest request{
      {vector_of(kernels::DType::f32, elements)}, {vector_of(kernels::DType::bf16, elements)}, control_};
  const std::vector<void*> from{memory_->flat_parameters()}, to{memory_->flat_copy()};
  kernels::reorder_forward(options_.backend, {}, request).bind({from, to, nullptr})(nullptr);
  kernels::synchronize(options_.backend);
}

}  // namespace convoy::app
