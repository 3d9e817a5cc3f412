// Support for the tests of layer norm and group norm, whose moments are outputs of forward and
// operands of backward.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {

// Returns the moments from the reference's forward pass, as an operand of backward.
inline Tensor moments_of(const Case& forward) {
  const Tensor moments = run_reference(forward).outputs[1];
  return floats(moments.desc.shape, moments.values);
}

// Checks the moments if the mean is far above the standard deviation. `forward` makes the case of
// an input, gamma and beta.
inline void expect_moments_far_from_zero(
    const std::function<Case(const Tensor& x, const Tensor& gamma, const Tensor& beta)>& forward) {
  Random random(9);
  for (const Shape& shape : {Shape{2, 96, 28, 28}, Shape{2, 20, 9, 3}})
    for (const double ratio : kRatios) {
      const Case test = forward(random.uniform(shape, ratio - std::sqrt(3.0), ratio + std::sqrt(3.0)),
                                random.uniform({shape[1]}, 0.5, 2), random.uniform({shape[1]}));
      const Tensor exact = run_reference(test).outputs[1];
      for (const Backend backend : backends())
        for (const Layout layout : layouts_of(backend)) {
          const Tensor moments = run(backend, layout, test).outputs[1];
          for (std::size_t i = exact.values.size() / 2; i < exact.values.size(); ++i)
            EXPECT_NEAR(moments.values[i], exact.values[i], 2e-6 * exact.values[i])
                << test.name << " on " << name_of(backend) << ", ratio " << ratio;
        }
    }
}

}  // namespace convoy::kernels::testing
