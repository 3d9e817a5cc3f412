// What comes behind backward: clipping and the update of the flat buffers.
#include <algorithm>

#include "app/compile/update_kernels.h"
#include "app/execute/session.h"
#include "kernels/accumulate/accumulate.h"
#include "kernels/device/device_memory.h"
#include "kernels/reorder/reorder.h"

namespace convoy::app {
namespace {

kernels::TensorDesc vector_of(kernels::DType type, std::int64_t elements) {
  return {type, {elements}, kernels::Layout::row_major, nullptr};
}

}  // namespace

UpdateKernels make_update_kernels(const SessionOptions& options, const FlatLayout& flat,
                                  const kernels::StepControl* control) {
  if (flat.elements == 0) return {};
  const kernels::TensorDesc buffer = vector_of(kernels::DType::f32, flat.elements);
  kernels::OptimizerProblem problem = options.optimizer;
  problem.segments = flat.segments;
  kernels::KernelRequest request{{buffer, buffer}, {}, control};
  request.inputs.resize(static_cast<std::size_t>(kernels::optimizer_inputs(problem)), buffer);
  if (flat.copied) request.outputs.push_back(vector_of(kernels::DType::bf16, flat.elements));
  kernels::KernelRequest norm{{buffer}, {vector_of(kernels::DType::f64, 1)}, control};
  kernels::KernelRequest clip{norm.outputs, {vector_of(kernels::DType::f32, 1)}, control};
  return {kernels::optimizer_update(options.backend, problem, request),
          kernels::squared_norm(options.backend, {}, norm),
          kernels::clip_scale(options.backend, {options.clip_gradient_norm}, clip)};
}

void Session::append_update(Program& program, const UpdateKernels& kernels) {
  if (buckets_ != nullptr) {
    Instruction wait{"gradients", "wait_buckets", nullptr};
    wait.writes.push_back(flat(memory_->flat_gradients()));
    append_communication(program, std::move(wait),
                         [this](kernels::Stream stream) { buckets_->wait_all(stream); });
  }
  if (buckets_ == nullptr && options_.accumulate)
    append_accumulation(program, flat(memory_->flat_gradients()), true);
  if (memory_->flat_elements() == 0) return append_no_update(program);
  if (options_.clip_gradient_norm > 0) append_clipping(program, kernels);
  std::vector<void*> inputs{memory_->flat_parameters(), memory_->flat_gradients()}, outputs;
  const int states = kernels::optimizer_states(options_.optimizer);
  for (int state = 0; state < states; ++state) inputs.push_back(memory_->flat_optimizer_state(state));
  if (options_.optimizer.average_decay > 0) inputs.push_back(memory_->flat_averages());
  if (memory_->flat_copy() != nullptr) outputs.push_back(memory_->flat_copy());
  Instruction update{"parameters", "optimizer_update",
                     kernels.update.bind({inputs, outputs, memory_->update_workspace()})};
  update.fills = true;
  for (const void* buffer : inputs) update.writes.push_back(flat(buffer));
  for (const void* copy : outputs) update.writes.push_back(flat(copy, sizeof(std::uint16_t)));
  for (const MemoryRange& range : update.writes) update.bytes += 2 * range.bytes;
  update.bytes -= update.writes[1].bytes;  // gradients are only read, the copy is only written
  for (std::size_t i = inputs.size(); i < update.writes.size(); ++i) update.bytes -= update.writes[i].bytes;
  if (options_.clip_gradient_norm > 0) update.reads.push_back({gradient_scale(), sizeof(float)});
  update.writes.push_back(
      {memory_->update_workspace(), static_cast<std::int64_t>(kernels.update.workspace_bytes)});
  program.add(std::move(update));
}

// The gradients of a part of the batch to the sum over its parts; of the last part the sum goes
// where the gradients are, from where the ranks sum them. `slice`: of the flat gradients.
void Session::append_accumulation(Program& program, const MemoryRange& slice, bool last_part) {
  const std::int64_t elements = slice.bytes / std::int64_t{sizeof(float)};
  if (elements == 0) return;
  void* const gradients = const_cast<void*>(slice.begin);
  void* const sum =
      memory_->flat_accumulated() + (static_cast<const float*>(slice.begin) - memory_->flat_gradients());
  const kernels::TensorDesc buffer = vector_of(kernels::DType::f32, elements);
  kernels::KernelRequest request{{buffer, buffer}, {buffer}, control_};
  const std::vector<void*> inputs{sum, gradients}, outputs{last_part ? gradients : sum};
  Instruction add{
      "gradients", "accumulate_gradients",
      kernels::accumulate_gradients(options_.backend, {}, request).bind({inputs, outputs, nullptr}), 0,
      3 * slice.bytes};
  add.fills = true;
  (last_part ? add.writes : add.reads).push_back(slice);
  (last_part ? add.reads : add.writes).push_back({sum, slice.bytes});
  program.add(std::move(add));
}

void Session::append_statistics_average(Program& program) {
  const std::int64_t elements = memory_->statistics_elements();
  if (options_.optimizer.average_decay == 0 || elements == 0) return;
  const kernels::TensorDesc buffer = vector_of(kernels::DType::f32, elements);
  kernels::KernelRequest request{{buffer, buffer}, {}, control_};
  const std::vector<void*> inputs{memory_->statistics(), memory_->statistics_averages()};
  const std::int64_t bytes = elements * std::int64_t{sizeof(float)};
  Instruction average{"statistics", "moving_average",
                      kernels::moving_average(options_.backend, {options_.optimizer.average_decay}, request)
                          .bind({inputs, {}, nullptr}),
                      0, 3 * bytes};
  average.reads = {{memory_->statistics(), bytes}};
  average.writes = {{memory_->statistics_averages(), bytes}};
  program.add(std::move(average));
}

// A part without parameters has only its say in the norm of all gradients.
void Session::append_no_update(Program& program) {
  if (options_.clip_gradient_norm <= 0) return;
  Instruction nothing{"gradients", "squared_norm", [this](kernels::Stream stream) {
                        kernels::clear(options_.backend, memory_->gradient_norm(), sizeof(double), stream);
                      }};
  nothing.writes = {{memory_->gradient_norm(), sizeof(double)}};
  program.add(std::move(nothing));
  append_all_reduce(program, *groups_.parts, "gradient norm", memory_->gradient_norm(), 1);
}

void Session::append_clipping(Program& program, const UpdateKernels& kernels) {
  const std::vector<void*> gradients{memory_->flat_gradients()}, squares{memory_->gradient_norm()},
      scale{gradient_scale()};
  Instruction norm{"gradients", "squared_norm",
                   kernels.norm.bind({gradients, squares, memory_->update_workspace()})};
  norm.reads = {flat(memory_->flat_gradients())};
  norm.bytes = norm.reads[0].bytes;
  norm.fills = true;
  norm.writes = {{memory_->gradient_norm(), sizeof(double)},
                 {memory_->update_workspace(), static_cast<std::int64_t>(kernels.norm.workspace_bytes)}};
  program.add(std::move(norm));
  if (transfers_ != nullptr)
    append_all_reduce(program, *groups_.parts, "gradient norm", memory_->gradient_norm(), 1);
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
  kernels::reorder_forward(options_.backend, {}, request).bind({from, to, nullptr})({});
  kernels::synchronize(options_.backend);
}

}  // namespace convoy::app
