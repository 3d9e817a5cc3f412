// Which tensors of a step become bf16, and that the rest of the graph does not notice.
#include "app/model/precision.h"

#include <gtest/gtest.h>

#include "app/model/device_input.h"
#include "app/model/graph_builder.h"
#include "kernels/augment/augment.h"
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

TEST(Precision, ProductsReadTheCopyAndNobodyElseDoes) {
  StepGraph graph = build_step_graph(fuse(every_op()), {});
  store_in_bf16(graph);
  int readers = 0;
  for (const Node& node : graph.nodes)
    for (const TensorId input : node.inputs) {
      const bool product = node.kind.starts_with("conv2d") || node.kind.starts_with("linear");
      if (at(graph, input).role == TensorRole::parameter_copy) {
        EXPECT_TRUE(product) << node.kind;
        ++readers;
      }
      if (product && at(graph, input).role == TensorRole::parameter) {
        EXPECT_EQ(at(graph, input).shape.rank(), 1) << at(graph, input).name;
      }
    }
  EXPECT_GT(readers, 0);
  for (const TrainableParameter& parameter : graph.parameters) {
    EXPECT_EQ(at(graph, parameter.gradient).dtype, DType::f32);
    EXPECT_EQ(parameter.copy >= 0, parameter.spec.shape.rank() > 1) << parameter.spec.name;
    if (parameter.copy >= 0) {
      EXPECT_EQ(at(graph, parameter.gradient).partner, parameter.copy);
    }
  }
}

TEST(DeviceInput, TheImagesAreMadeFirstFromTheStoredOnes) {
  StepGraph graph = build_step_graph(fuse(every_op()), {});
  const TensorId images = graph.images;
  store_in_bf16(graph);
  read_stored_images(graph, {{12, 3, 9, 9}, DType::u8, {1, 1, 1}, {0, 0, 0}});
  EXPECT_EQ(graph.nodes[0].kind, "augment_forward");
  EXPECT_EQ(graph.nodes[0].outputs, std::vector{images});
  EXPECT_EQ(at(graph, images).role, TensorRole::activation);
  EXPECT_EQ(at(graph, images).dtype, DType::bf16);
  EXPECT_EQ(at(graph, graph.images).role, TensorRole::images);
  EXPECT_EQ(at(graph, graph.images).dtype, DType::u8);
  EXPECT_EQ(at(graph, graph.draws).shape, (Shape{at(graph, images).shape[0], kernels::kAugmentDraws}));
}

}  // namespace
}  // namespace convoy::app
