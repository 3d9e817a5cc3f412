// Runs a step graph on one host backend, for tests of the graph itself. Every persistent tensor has
// a buffer of its own. Activations are either where the memory plan puts them, and then share
// memory, or in separate buffers.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/graph/graph_builder.h"
#include "kernels/device/mix_parameters.h"
#include "kernels/device/philox.h"

namespace convoy::app {

enum class Placement { planned, separate };

class GraphRunner {
 public:
  GraphRunner(const Network& network, const GraphOptions& options,
              kernels::Backend backend = kernels::Backend::reference,
              Placement placement = Placement::planned, const std::function<void(StepGraph&)>& rewrite = {})
      : GraphRunner(compile_graph(rewritten(build_step_graph(network, options), rewrite), backend),
                    placement) {}

  explicit GraphRunner(CompiledGraph compiled, Placement placement = Placement::planned)
      : compiled_(std::move(compiled)) {
    const auto batch = static_cast<std::int32_t>(graph().tensors[id(graph().labels)].shape[0]);
    control_.valid = control_.global_valid = batch;
    control_.seed = 11, control_.step = 5;
    allocate(placement);
    for (std::size_t node = 0; node < compiled_.kernels.size(); ++node) bind(node);
    for (const GraphParameter& parameter : graph().parameters) initialise(parameter.tensor, parameter.spec);
    for (const auto& [tensor, spec] : graph().states) initialise(tensor, spec);
    fill_batch(batch);
  }

  const StepGraph& graph() const { return compiled_.graph; }
  kernels::StepControl& control() { return control_; }
  // The logits [N, classes] of the main output, which the first loss reads.
  TensorId logits() const {
    const auto loss = std::ranges::find_if(graph().nodes, &Node::is<SoftmaxCrossEntropyForward>);
    return loss->inputs[0];
  }

  // Runs the step and returns the mean loss over the samples that are not padding.
  double run() {
    for (const kernels::Launch& launch : launches_) launch({});
    return metrics()[0] / control_.global_valid;
  }
  const double* metrics() const { return static_cast<const double*>(address_.at(id(graph().metrics))); }
  std::int32_t* labels() { return static_cast<std::int32_t*>(address_.at(id(graph().labels))); }

  void mix(const kernels::MixParameters& parameters) {
    for (const TensorId tensor : {graph().mix_of_images, graph().mix_of_labels})
      if (tensor >= 0) std::memcpy(address_[id(tensor)], &parameters, sizeof parameters);
  }

  std::vector<float> read(TensorId tensor) const {
    const auto& desc = compiled_.descs[id(tensor)];
    std::vector<float> values(static_cast<std::size_t>(desc.shape.elements()));
    kernels::to_row_major(desc, address_[id(tensor)], values.data());
    return values;
  }
  void write(TensorId tensor, const std::vector<float>& values) {
    kernels::from_row_major(compiled_.descs[id(tensor)], values.data(), address_[id(tensor)]);
  }
  std::map<std::string, std::vector<float>> gradients() const {
    std::map<std::string, std::vector<float>> all;
    for (const GraphParameter& parameter : graph().parameters)
      if (parameter.gradient >= 0) all[parameter.spec.name] = read(parameter.gradient);
    return all;
  }
  // Returns whether no kernel wrote before the arena or after it.
  bool kept_to_arena() const {
    const auto untouched = [](const std::byte* first) {
      return std::all_of(first, first + kGuard, [](std::byte value) { return value == std::byte{0xff}; });
    };
    return untouched(arena_ - kGuard) && untouched(arena_ + compiled_.activation_bytes);
  }
  std::vector<float> states() const {
    std::vector<float> all;
    for (const auto& [tensor, spec] : graph().states)
      for (const float value : read(tensor)) all.push_back(value);
    return all;
  }

 private:
  static constexpr std::ptrdiff_t kGuard = 4096;  // bytes before the arena and after it

  static StepGraph rewritten(StepGraph graph, const std::function<void(StepGraph&)>& rewrite) {
    if (rewrite) rewrite(graph);
    return graph;
  }
  static std::size_t id(TensorId tensor) { return static_cast<std::size_t>(tensor); }

  // Returns a buffer that is aligned as the arena is. It is full of NaN, so that a read of memory
  // that was not written changes the results.
  void* buffer(std::size_t bytes) {
    const std::size_t words = (bytes + 63) / 64 * 16;
    storage_.push_back(std::make_unique<float[]>(words + 16));
    void* aligned = storage_.back().get();
    std::size_t space = (words + 16) * sizeof(float);
    std::align(64, words * sizeof(float), aligned, space);
    std::memset(aligned, 0xff, words * sizeof(float));
    return aligned;
  }

  void allocate(Placement placement) {
    arena_ =
        static_cast<std::byte*>(buffer(static_cast<std::size_t>(compiled_.activation_bytes) + 2 * kGuard)) +
        kGuard;
    for (std::size_t tensor = 0; tensor < compiled_.descs.size(); ++tensor) {
      const std::int64_t offset = compiled_.tensor_offset[tensor];
      const bool in_plan = placement == Placement::planned && offset >= 0;
      address_.push_back(in_plan ? arena_ + offset : buffer(compiled_.descs[tensor].bytes()));
    }
    workspaces_planned_ = placement == Placement::planned;
  }

  void bind(std::size_t node) {
    // There is only one rank, so a sum over the ranks changes nothing.
    if (graph().nodes[node].is<AllReduce>()) return;
    std::vector<void*> inputs, outputs;
    for (const TensorId tensor : graph().nodes[node].inputs) inputs.push_back(address_[id(tensor)]);
    for (const TensorId tensor : graph().nodes[node].outputs) outputs.push_back(address_[id(tensor)]);
    void* workspace = nullptr;
    if (const std::int64_t offset = compiled_.workspace_offset[node]; offset >= 0)
      workspace = workspaces_planned_ ? arena_ + offset : buffer(compiled_.kernels[node].workspace_bytes);
    launches_.push_back(compiled_.kernels[node].bind({inputs, outputs, workspace, &control_}));
  }

  void initialise(TensorId tensor, const ParameterSpec& spec) {
    std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
    initialize(spec, 3, values.data());
    write(tensor, values);
  }

  void fill_batch(std::int32_t batch) {
    const Shape& shape = graph().tensors[id(graph().images)].shape;
    initialize({"images", shape, Initializer::normal(1)}, 17,
               static_cast<float*>(address_[id(graph().images)]));
    const auto classes = static_cast<std::uint32_t>(graph().tensors[id(logits())].shape[1]);
    for (std::int32_t i = 0; i < batch; ++i)
      labels()[i] =
          static_cast<std::int32_t>(kernels::philox(23, static_cast<std::uint64_t>(i)).word[0] % classes);
  }

  kernels::StepControl control_;
  CompiledGraph compiled_;
  std::vector<std::unique_ptr<float[]>> storage_;
  std::byte* arena_ = nullptr;
  bool workspaces_planned_ = true;
  std::vector<void*> address_;
  std::vector<kernels::Launch> launches_;
};

}  // namespace convoy::app
