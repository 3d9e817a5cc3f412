#include "app/graph/passes/device_input.h"

#include <algorithm>
#include <iterator>

#include "kernels/device/sample_transform.h"

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
  const auto node = [&](NodeOp op, std::vector<TensorId> inputs, TensorId output) {
    nodes.push_back({"input", std::move(op), Phase::forward, std::move(inputs), {output}});
  };
  node(ResampleForward{{input.fill}}, {graph.images, graph.transforms}, images);
  if (input.most_image_ops > 0) {
    const TensorId changed = add({"changed images", TensorRole::activation, DType::u8, pixels});
    node(ImageOpsForward{{input.most_image_ops}}, {images, graph.transforms}, changed);
    images = changed;
  }
  node(NormaliseForward{{input.scale, input.shift}}, {images, graph.transforms}, ready);
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(nodes.begin()),
                     std::make_move_iterator(nodes.end()));
}

// Recognises the nodes of read_stored_images() by their input `transforms`, which no other node
// reads.
bool makes_stored_images(const StepGraph& graph, const Node& node) {
  return graph.transforms >= 0 && std::ranges::find(node.inputs, graph.transforms) != node.inputs.end();
}

}  // namespace convoy::app
