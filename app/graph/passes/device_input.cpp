#include "app/graph/passes/device_input.h"

#include <algorithm>
#include <iterator>

#include "kernels/device/sample_transform.h"
#include "kernels/image_ops/image_ops.h"
#include "kernels/normalise/normalise.h"
#include "kernels/resample/resample.h"

namespace convoy::app {

void read_stored_images(StepGraph& graph, const StoredInput& input) {
  using kernels::DType;
  const auto add = [&](Tensor tensor) {
    graph.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(graph.tensors.size()) - 1;
  };
  const TensorId ready = graph.images;
  graph.tensors[ready].role = TensorRole::activation;
  const kernels::Shape shape = graph.tensors[ready].shape;
  graph.images = add({"stored pixels", TensorRole::images, DType::u8, {input.bytes}});
  graph.transforms = add({"transforms",
                          TensorRole::transforms,
                          DType::u8,
                          {shape[0], static_cast<std::int64_t>(sizeof(kernels::SampleTransform))}});
  const kernels::Shape pixels{shape[0], input.channels, shape[2], shape[3]};
  TensorId images = add({"resampled images", TensorRole::activation, DType::u8, pixels});
  std::vector<Node> nodes;
  const auto node = [&](const char* kind, std::vector<TensorId> inputs, TensorId output, KernelMaker make) {
    nodes.push_back({"input", kind, Phase::forward, std::move(inputs), {output}, std::move(make)});
  };
  node("resample_forward", {graph.images, graph.transforms}, images,
       [problem = kernels::ResampleProblem{input.fill}](kernels::Backend backend,
                                                        kernels::KernelRequest& request) {
         return kernels::resample_forward(backend, problem, request);
       });
  if (input.most_image_ops > 0) {
    const TensorId changed = add({"changed images", TensorRole::activation, DType::u8, pixels});
    node("image_ops_forward", {images, graph.transforms}, changed,
         [problem = kernels::ImageOpsProblem{input.most_image_ops}](kernels::Backend backend,
                                                                    kernels::KernelRequest& request) {
           return kernels::image_ops_forward(backend, problem, request);
         });
    images = changed;
  }
  node("normalise_forward", {images, graph.transforms}, ready,
       [problem = kernels::NormaliseProblem{input.scale, input.shift}](kernels::Backend backend,
                                                                       kernels::KernelRequest& request) {
         return kernels::normalise_forward(backend, problem, request);
       });
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(nodes.begin()),
                     std::make_move_iterator(nodes.end()));
}

// Each of these nodes, and no other, reads the transforms.
bool makes_stored_images(const StepGraph& graph, const Node& node) {
  return graph.transforms >= 0 && std::ranges::find(node.inputs, graph.transforms) != node.inputs.end();
}

}  // namespace convoy::app
