// Tests products and sums with factors that are repeated over an image.
#include "kernels/broadcast/broadcast.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

using Maker = Kernel (*)(Backend, const BroadcastProblem&, KernelRequest&);

Case case_of(const char* name, Maker maker, std::vector<Tensor> inputs, std::vector<TensorDesc> outputs,
             double tolerance) {
  Case test{.name = std::string(name) + " " + inputs[0].desc.shape.to_string(),
            .maker = [=](Backend backend, KernelRequest& request) { return maker(backend, {}, request); },
            .inputs = std::move(inputs),
            .outputs = std::move(outputs),
            .tolerance = tolerance};
  for (const Tensor& input : test.inputs) test.name += " " + input.desc.shape.to_string();
  return test;
}

Case multiply(Tensor x, Tensor factor) {
  const TensorDesc y = f32(x.desc.shape);
  return case_of("multiply_forward", multiply_forward, {std::move(x), std::move(factor)}, {y}, 2e-7);
}
Case multiply_gradient(Tensor x, Tensor factor, Tensor dy) {
  const std::vector<TensorDesc> outputs = {f32(x.desc.shape), f32(factor.desc.shape)};
  return case_of("multiply_backward", multiply_backward, {std::move(x), std::move(factor), std::move(dy)},
                 outputs, 2e-6);
}
Case add_term(Tensor x, Tensor term) {
  const TensorDesc y = f32(x.desc.shape);
  return case_of("broadcast_add_forward", broadcast_add_forward, {std::move(x), std::move(term)}, {y}, 2e-7);
}
Case term_gradient(Tensor dy, Shape term) {
  return case_of("broadcast_add_backward", broadcast_add_backward, {std::move(dy)}, {f32(term)}, 2e-6);
}

// Returns the shapes that a factor of x may have, besides the shape of x itself.
std::vector<Shape> repeated(const Shape& x) {
  if (x.rank() == 2) return {Shape{x[1]}};
  return {Shape{x[1]}, Shape{x[0], x[1], 1, 1}};
}

const std::vector<Shape> kShapes = {{2, 3, 5, 7}, {2, 64, 28, 28}, {3, 33, 4, 4}, {4, 72, 14, 14},
                                    {5, 37},      {1, 16, 50, 41}, {300, 40}};

TEST(Broadcast, MatchesTheReference) {
  Random random(1);
  for (const Shape& shape : kShapes) {
    for (const Shape& factor : repeated(shape)) {
      expect_matches_reference(multiply(random.uniform(shape), random.uniform(factor)));
      expect_matches_reference(
          multiply_gradient(random.uniform(shape), random.uniform(factor), random.uniform(shape)));
      expect_matches_reference(add_term(random.uniform(shape), random.uniform(factor)));
      expect_matches_reference(term_gradient(random.uniform(shape), factor));
    }
    expect_matches_reference(multiply(random.uniform(shape), random.uniform(shape)));
    expect_matches_reference(
        multiply_gradient(random.uniform(shape), random.uniform(shape), random.uniform(shape)));
  }
}

TEST(Broadcast, BackwardIsTheDerivative) {
  Random random(2);
  const Shape shape{2, 3, 2, 3};
  const Tensor dy = random.uniform(shape);
  std::vector<Shape> factors = repeated(shape);
  for (const Shape& factor : factors) {
    const Case forward = add_term(random.uniform(shape), random.uniform(factor));
    const Result gradient = run_reference(term_gradient(dy, factor));
    expect_gradient(gradient.outputs[0].values, central_differences(forward, 1, {dy.values}), forward.name);
    expect_gradient(dy.values, central_differences(forward, 0, {dy.values}), forward.name);
  }
  factors.push_back(shape);
  for (const Shape& factor : factors) {
    const Case forward = multiply(random.uniform(shape), random.uniform(factor));
    const Result gradient = run_reference(multiply_gradient(forward.inputs[0], forward.inputs[1], dy));
    for (int i = 0; i < 2; ++i)
      expect_gradient(gradient.outputs[i].values, central_differences(forward, i, {dy.values}), forward.name);
  }
}

TEST(Broadcast, RefusesOtherShapes) {
  for (const Backend backend : {Backend::reference, Backend::cpu})
    for (const Shape& factor : {Shape{2}, Shape{1, 3, 1, 1}, Shape{2, 3, 4, 1}, Shape{2, 1, 4, 4}}) {
      KernelRequest request{{f32({2, 3, 4, 4}), f32(factor)}, {f32({2, 3, 4, 4})}};
      request.inputs[0].layout = Layout::row_major;
      EXPECT_THROW(multiply_forward(backend, {}, request), std::invalid_argument) << factor.to_string();
    }
  KernelRequest request{{f32({2, 3}), f32({2, 3})}, {f32({2, 3})}};
  EXPECT_THROW(broadcast_add_forward(Backend::cpu, {}, request), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::kernels::testing
