#include "kernels/reorder/reorder.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

TEST(Reorder, MovesEveryElement) {
  Random random(9);
  const std::vector<Layout> layouts = {Layout::row_major, Layout::channels_last, Layout::blocked16,
                                       Layout::blocked8};
  for (const Shape& shape : kElementwiseShapes) {
    if (shape.rank() != 4) continue;
    for (const Layout from : layouts)
      for (const Layout to : layouts) {
        Tensor x = random.uniform(shape);
        x.desc.layout = from;
        TensorDesc y = f32(shape);
        y.layout = to;
        const Case test{
            .name = "reorder_forward " + shape.to_string(),
            .maker = [](Backend b, KernelRequest& request) { return reorder_forward(b, {}, request); },
            .inputs = {x},
            .outputs = {y},
            .onednn = true};
        EXPECT_EQ(run(Backend::cpu, Layout::row_major, test).outputs[0].values, x.values)
            << shape.to_string() << " from " << int(from) << " to " << int(to);
      }
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
