#include "app/model/device_input.h"

#include "kernels/augment/augment.h"

namespace convoy::app {

void read_stored_images(StepGraph& graph, const StoredInput& input) {
  const auto add = [&](Tensor tensor) {
    graph.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(graph.tensors.size()) - 1;
  };
  const TensorId images = graph.images;
  const std::int64_t samples = graph.tensors[static_cast<std::size_t>(images)].shape[0];
  graph.tensors[static_cast<std::size_t>(images)].role = TensorRole::activation;
  graph.images = add({"stored images", TensorRole::images, input.dtype, input.images});
  graph.draws = add({"draws", TensorRole::draws, kernels::DType::i32, {samples, kernels::kAugmentDraws}});
  const kernels::AugmentProblem problem{input.scale, input.shift};
  Node node{"input",
            "augment_forward",
            Phase::forward,
            {graph.images, graph.draws},
            {images},
            [problem](kernels::Backend backend, kernels::KernelRequest& request) {
              return kernels::augment_forward(backend, problem, request);
            }};
  graph.nodes.insert(graph.nodes.begin(), std::move(node));
}

}  // namespace convoy::app
