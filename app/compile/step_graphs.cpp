#include "app/compile/step_graphs.h"

#include <algorithm>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/device_input.h"
#include "app/graph/passes/fusions.h"
#include "app/graph/passes/weight_gradient_pieces.h"
#include "data/loader/normaliser.h"
#include "kernels/conv2d/conv2d.h"

namespace convoy::app {
namespace {

StoredInput stored_input(const InputOptions& input, bool training) {
  StoredInput stored;
  // A session that reads the images of another one has a place for one image, which is not used.
  stored.bytes = input.kind == InputOptions::Kind::streamed
                     ? input.batch_bytes * kRingSlots
                     : std::max<std::int64_t>(input.resident_images, 1) * input.stored.bytes();
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

}  // namespace

StepGraph make_step_graph(const Network& fused, const StepOptions& options, int replicas, bool training) {
  StepGraph graph = build_step_graph(
      fused, {training, options.synchronised_batch_norm, replicas, options.precision == Precision::tf32,
              options.mixing, options.loss_weights, !training && options.keep_probabilities});
  join_slice_gradients(graph);
  if (options.backend == kernels::Backend::cuda) {
    const bool norms = kernels::conv2d_fuses_input_norm(options.backend);
    fuse_for_gpu(
        graph, norms && options.precision != Precision::fp32,
        norms && options.precision == Precision::bf16 ? std::optional(options.norm_inputs) : std::nullopt);
  }
  if (options.precision == Precision::bf16) store_in_bf16(graph);
  if (options.input.kind != InputOptions::Kind::filled)
    read_stored_images(graph, stored_input(options.input, training));
  if (training) cut_weight_gradients(graph, options.pieces);
  return graph;
}

}  // namespace convoy::app
