// Checks which tensors of a step become bf16, and that the rest of the graph does not change.
#include "app/graph/passes/precision.h"

#include <gtest/gtest.h>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/device_input.h"
#include "kernels/device/sample_transform.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

using kernels::DType;

const Tensor& at(const StepGraph& graph, TensorId id) { return graph.tensors[static_cast<std::size_t>(id)]; }

TEST(Precision, Bf16StoresActivationsAndKeepsEverythingElse) {
  const StepGraph before = build_step_graph(fuse(every_op()), {});
  StepGraph graph = before;
  store_in_bf16(graph);
  for (std::size_t i = 0; i < before.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    const bool stored = tensor.role == TensorRole::activation || tensor.role == TensorRole::images;
    if (!stored || before.tensors[i].dtype != DType::f32) {
      EXPECT_EQ(tensor.dtype, before.tensors[i].dtype) << tensor.name;
    } else
      EXPECT_EQ(tensor.dtype, tensor.name == "loss/probabilities" ? DType::f32 : DType::bf16) << tensor.name;
  }
}

TEST(Precision, OnlyMatrixProductsReadTheBf16Copies) {
  StepGraph graph = build_step_graph(fuse(every_op()), {});
  store_in_bf16(graph);
  int readers = 0;
  for (const Node& node : graph.nodes)
    for (const TensorId input : node.inputs) {
      const bool product = node.name().starts_with("conv2d") || node.name().starts_with("linear");
      if (at(graph, input).role == TensorRole::parameter_copy) {
        EXPECT_TRUE(product) << node.name();
        ++readers;
      }
      if (product && at(graph, input).role == TensorRole::parameter) {
        EXPECT_EQ(at(graph, input).shape.rank(), 1) << at(graph, input).name;
      }
    }
  EXPECT_GT(readers, 0);
  for (const GraphParameter& parameter : graph.parameters) {
    EXPECT_EQ(at(graph, parameter.gradient).dtype, DType::f32);
    EXPECT_EQ(parameter.copy >= 0, parameter.spec.shape.rank() > 1) << parameter.spec.name;
    if (parameter.copy >= 0) {
      EXPECT_EQ(at(graph, parameter.gradient).same_layout_as, parameter.copy);
    }
  }
}

TEST(DeviceInput, TheImagesAreMadeFirstFromTheStoredOnes) {
  for (const int image_ops : {0, 2}) {
    StepGraph graph = build_step_graph(fuse(every_op()), {});
    const TensorId images = graph.images;
    store_in_bf16(graph);
    read_stored_images(graph, {.bytes = 1000,
                               .channels = 3,
                               .scale = {1, 1, 1},
                               .shift = {0, 0, 0},
                               .fill = {0, 0, 0},
                               .most_image_ops = image_ops});
    const std::vector<std::string> kinds =
        image_ops > 0 ? std::vector<std::string>{"resample_forward", "image_ops_forward", "normalise_forward"}
                      : std::vector<std::string>{"resample_forward", "normalise_forward"};
    TensorId input = graph.images;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      EXPECT_EQ(graph.nodes[i].name(), kinds[i]);
      EXPECT_EQ(graph.nodes[i].inputs, (std::vector{input, graph.transforms}));
      input = graph.nodes[i].outputs.at(0);
    }
    EXPECT_EQ(input, images);
    EXPECT_EQ(at(graph, images).role, TensorRole::activation);
    EXPECT_EQ(at(graph, images).dtype, DType::bf16);
    EXPECT_EQ(at(graph, graph.images).role, TensorRole::images);
    EXPECT_EQ(at(graph, graph.images).shape, Shape{1000});
    EXPECT_EQ(at(graph, graph.images).dtype, DType::u8);
    EXPECT_EQ(at(graph, graph.transforms).shape,
              (Shape{at(graph, images).shape[0], std::int64_t{sizeof(kernels::SampleTransform)}}));
  }
}

}  // namespace
}  // namespace convoy::app
