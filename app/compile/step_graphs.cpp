// The step graphs of a session: what precision, input, backend and memory limit make of the network's.
#include "app/execute/session.h"
#include "app/graph/graph_builder.h"
#include "app/graph/passes/recompute.h"
#include "data/loader/normaliser.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/device/tuning.h"

namespace convoy::app {

namespace {

StoredInput stored_input(const InputOptions& input, bool training) {
  StoredInput stored;
  stored.bytes = input.kind == InputOptions::Kind::streamed ? input.batch_bytes * kRingSlots
                                                            : input.resident_images * input.stored.bytes();
  stored.channels = input.stored.channels;
  stored.most_image_ops = training ? input.most_image_ops : 0;
  const std::vector<data::ScaleShift> factors = data::normalisation(input.mean, input.std);
  for (const data::ScaleShift& factor : factors) {
    stored.scale.push_back(factor.scale);
    stored.shift.push_back(factor.shift);
  }
  stored.fill = data::nearest_to_zero(factors);
  return stored;
}

// Of 1, 2, 4, 8 and 16 nodes four are fastest on an H200 (docs/results/training.md).
int reuse_delay_of(const SessionOptions& options) {
  return options.backend == kernels::Backend::cuda && options.lanes > 1 ? 4 : 0;
}

}  // namespace

StepGraph session_graph(const Network& fused, const SessionOptions& options, int replicas, bool training) {
  StepGraph graph =
      build_step_graph(fused, {training, options.synchronised_batch_norm, replicas, options.label_smoothing,
                               options.precision == Precision::tf32, options.mixing});
  if (options.backend == kernels::Backend::cuda) {
    fuse_statistics(graph);
    fuse_relu_gradients(graph);
    fuse_relu_masks(graph);
    if (options.precision != Precision::fp32 && kernels::conv2d_fuses_input_norm(options.backend))
      fuse_norm_gradients(graph);
  }
  if (options.precision == Precision::bf16) store_in_bf16(graph);
  if (options.input.kind != InputOptions::Kind::filled)
    read_stored_images(graph, stored_input(options.input, training));
  return graph;
}

CompiledSteps compile_session(const Network& network, const SessionOptions& options, int replicas,
                              const kernels::StepControl* control) {
  const Network fused = fuse(network);
  std::optional<StepGraph> train;
  if (options.training) train = session_graph(fused, options, replicas, true);
  return compile_steps(std::move(train), session_graph(fused, options, replicas, false), options.backend,
                       control, reuse_delay_of(options));
}

CompiledSteps compile_tuned_session(const Network& network, const SessionOptions& options,
                                    const RankGroups& groups, const kernels::StepControl* control) {
  using kernels::tuning::Mode;
  const bool tuned = options.backend == kernels::Backend::cuda && !options.tuning_file.empty();
  if (tuned)
    kernels::tuning::use(options.tuning_file, groups.world->size() == 1 ? Mode::measure : Mode::read);
  CompiledSteps steps = compile_session(network, options, groups.replicas->size(), control);
  if (tuned) kernels::tuning::save();
  return steps;
}

int stage_reuse_delay(const SessionOptions& options) {
  return options.memory_limit > 0 ? 0 : reuse_delay_of(options);
}

// Lets no place reuse_delay, then computes as few activations twice as it takes; where not even all of them do, the memory says
// what is missing.
void Session::fit_into_limit(const Network& network, const FlatLayout& flat, const MemoryRequest& request) {
  const auto fits = [&] {
    return total_bytes(plan_memory(&*train_, evaluate_, flat, request)) <= options_.memory_limit;
  };
  if (fits()) return;
  const StepGraph graph = session_graph(network, options_, ranks_.size(), true);
  const std::vector<RecomputeCandidate> candidates = recompute_candidates(graph);
  const auto layouts = parameter_layouts(*train_);
  const auto tight = [&](StepGraph changed) {
    return compile_graph(std::move(changed), options_.backend, control_, layouts);
  };
  const auto drop = [&](std::size_t count) {
    std::vector<TensorId> tensors;
    for (std::size_t i = 0; i < count; ++i) tensors.push_back(candidates[i].tensor);
    StepGraph changed = graph;
    recompute(changed, tensors);
    train_ = tight(std::move(changed));
  };
  if (reuse_delay_of(options_) > 0) {
    evaluate_ = tight(session_graph(network, options_, ranks_.size(), false));
    drop(0);
    if (fits()) return;
  }
  std::size_t few = 0, enough = candidates.size();  // few do not fit
  drop(enough);
  if (!fits()) return;
  std::size_t planned = enough;
  while (enough - few > 1) {
    planned = (few + enough) / 2;
    drop(planned);
    (fits() ? enough : few) = planned;
  }
  if (planned != enough) drop(enough);
}

}  // namespace convoy::app
