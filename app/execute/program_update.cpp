// Appends the instructions that come after backward: the sum over the parts of a batch, clipping,
// the update of the flat buffers, and moving averages.
#include <algorithm>

#include "app/execute/program_builder.h"
#include "kernels/accumulate/accumulate.h"
#include "kernels/device/device_memory.h"
#include "kernels/reorder/reorder.h"

namespace convoy::app {
namespace {

kernels::TensorDesc vector_of(kernels::DType type, std::int64_t elements) {
  return {type, {elements}, kernels::Layout::row_major, nullptr};
}

}  // namespace

// Clears the flat buffer of gradients, which another session may have overwritten since the last
// step. Backward writes all gradients, but not the gaps between them, and clipping reads the gaps,
// too.
void ProgramBuilder::append_clearing(Program& program) {
  if (!memory_.lends_scratch() || memory_.gradient_elements() == 0) return;
  const MemoryRange gradients = flat(memory_.flat_gradients());
  Instruction clear{"gradients", "clear",
                    [backend = options_.backend, gradients](kernels::Stream stream) {
                      kernels::clear(backend, const_cast<void*>(gradients.begin),
                                     static_cast<std::size_t>(gradients.bytes), stream);
                    },
                    0, gradients.bytes};
  clear.writes.push_back(gradients);
  program.add(std::move(clear));
}

void ProgramBuilder::append_update(Program& program) {
  if (communication_.buckets != nullptr) {
    Instruction wait{"gradients", "wait_buckets", nullptr};
    wait.buckets = BucketAction::wait;
    wait.writes.push_back(flat(memory_.flat_gradients()));
    append_communication(
        program, std::move(wait),
        [buckets = communication_.buckets.get()](kernels::Stream stream) { buckets->wait_all(stream); });
  }
  if (communication_.buckets == nullptr && options_.accumulate)
    append_accumulation(program, flat(memory_.flat_gradients()), true);
  if (memory_.gradient_elements() == 0) return append_no_update(program);
  if (options_.clip) append_clipping(program);
  std::vector<void*> inputs{memory_.flat_parameters(), memory_.flat_gradients()}, outputs;
  const int states = kernels::optimizer_states(options_.optimizer);
  for (int state = 0; state < states; ++state) inputs.push_back(memory_.flat_optimizer_state(state));
  if (options_.optimizer.averages) inputs.push_back(memory_.flat_averages());
  if (memory_.flat_copy() != nullptr) outputs.push_back(memory_.flat_copy());
  Instruction update{"parameters", "optimizer_update", nullptr};
  update.fills = true;
  for (const void* buffer : inputs) update.writes.push_back(flat(buffer));
  for (const void* copy : outputs) update.writes.push_back(flat(copy, sizeof(std::uint16_t)));
  for (const MemoryRange& range : update.writes) update.bytes += 2 * range.bytes;
  // Parameters and optimizer states are read and written, so their bytes count twice. Gradients are
  // only read and bf16 copies are only written, so their bytes count once.
  update.bytes -= update.writes[1].bytes;
  for (std::size_t i = inputs.size(); i < update.writes.size(); ++i) update.bytes -= update.writes[i].bytes;
  if (options_.clip) update.reads.push_back({gradient_scale(), sizeof(float)});
  update.writes.push_back(
      {memory_.update_workspace(), static_cast<std::int64_t>(steps_.update.update.workspace_bytes)});
  append_kernel(program, std::move(update), steps_.update.update, inputs, outputs,
                memory_.update_workspace());
}

// Adds the gradients of a part of the batch to the sum over all parts. For the last part, writes
// the sum into the buffer of the gradients, where it is then summed over the ranks. `slice` is a
// range of the flat gradients.
void ProgramBuilder::append_accumulation(Program& program, const MemoryRange& slice, bool last_part) {
  const std::int64_t elements = slice.bytes / std::int64_t{sizeof(float)};
  if (elements == 0) return;
  void* const gradients = const_cast<void*>(slice.begin);
  void* const sum =
      memory_.flat_accumulated() + (static_cast<const float*>(slice.begin) - memory_.flat_gradients());
  const kernels::TensorDesc buffer = vector_of(kernels::DType::f32, elements);
  kernels::KernelRequest request{{buffer, buffer}, {buffer}};
  const std::vector<void*> inputs{sum, gradients}, outputs{last_part ? gradients : sum};
  const kernels::Kernel kernel = kernels::accumulate_gradients(options_.backend, {}, request);
  Instruction add{"gradients", "accumulate_gradients", nullptr, 0, 3 * slice.bytes};
  add.fills = true;
  (last_part ? add.writes : add.reads).push_back(slice);
  (last_part ? add.reads : add.writes).push_back({sum, slice.bytes});
  append_kernel(program, std::move(add), kernel, inputs, outputs);
}

void ProgramBuilder::append_statistics_average(Program& program) {
  const std::int64_t elements = memory_.statistics_elements();
  if (!options_.optimizer.averages || elements == 0) return;
  const kernels::TensorDesc buffer = vector_of(kernels::DType::f32, elements);
  kernels::KernelRequest request{{buffer, buffer}, {}};
  const std::vector<void*> inputs{memory_.statistics(), memory_.statistics_averages()};
  const std::int64_t bytes = elements * std::int64_t{sizeof(float)};
  Instruction average{"statistics", "moving_average", nullptr, 0, 3 * bytes};
  average.reads = {{memory_.statistics(), bytes}};
  average.writes = {{memory_.statistics_averages(), bytes}};
  append_kernel(program, std::move(average), kernels::moving_average(options_.backend, {}, request), inputs,
                {});
}

// Replaces clipping and update in a stage without trained parameters. All stages sum the norm of
// the gradients together, so this stage must take part, with zero.
void ProgramBuilder::append_no_update(Program& program) {
  if (!options_.clip) return;
  Instruction nothing{"gradients", "squared_norm",
                      [backend = options_.backend, norm = memory_.gradient_norm()](kernels::Stream stream) {
                        kernels::clear(backend, norm, sizeof(double), stream);
                      }};
  nothing.writes = {{memory_.gradient_norm(), sizeof(double)}};
  program.add(std::move(nothing));
  append_all_reduce(program, *groups_.stages, "gradient norm", memory_.gradient_norm(), 1);
}

void ProgramBuilder::append_clipping(Program& program) {
  const std::vector<void*> gradients{memory_.flat_gradients()}, squares{memory_.gradient_norm()},
      scale{gradient_scale()};
  Instruction norm{"gradients", "squared_norm", nullptr};
  norm.reads = {flat(memory_.flat_gradients())};
  norm.bytes = norm.reads[0].bytes;
  norm.fills = true;
  norm.writes = {{memory_.gradient_norm(), sizeof(double)},
                 {memory_.update_workspace(), static_cast<std::int64_t>(steps_.update.norm.workspace_bytes)}};
  append_kernel(program, std::move(norm), steps_.update.norm, gradients, squares, memory_.update_workspace());
  if (partitioned()) append_all_reduce(program, *groups_.stages, "gradient norm", memory_.gradient_norm(), 1);
  Instruction clip{"gradients", "clip_scale", nullptr};
  clip.reads = {{memory_.gradient_norm(), sizeof(double)}};
  clip.writes = {{gradient_scale(), sizeof(float)}};
  append_kernel(program, std::move(clip), steps_.update.clip, squares, scale);
}

kernels::Launch ProgramBuilder::copy_parameters() const {
  if (memory_.flat_copy() == nullptr) return {};
  const std::int64_t elements = memory_.flat_elements();
  kernels::KernelRequest request{{vector_of(kernels::DType::f32, elements)},
                                 {vector_of(kernels::DType::bf16, elements)}};
  const kernels::Kernel kernel = kernels::reorder_forward(options_.backend, {}, request);
  std::vector<kernels::Launch> launches;
  for (int member = 0; member < memory_.members(); ++member) {
    const std::vector<void*> from{memory_.of_member<void>(memory_.flat_parameters(), member)},
        to{memory_.of_member(memory_.flat_copy(), member)};
    launches.push_back(kernel.bind({from, to}));
  }
  return [launches](kernels::Stream stream) {
    for (const kernels::Launch& launch : launches) launch(stream);
  };
}

}  // namespace convoy::app
