// Tests the initial values of sessions whose steps are only timed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/model/zoo/zoo.h"
#include "comm/single_rank.h"
#include "tests/app/execute/whole_session.h"

namespace convoy::app {
namespace {

std::vector<std::vector<float>> initial_values(bool all) {
  StepOptions options;
  options.initialise_all = all;
  comm::SingleRank ranks;
  Session session = whole_session(make_network("lenet", {2, 1, 28, 28}, 10), options, ranks);
  std::vector<std::vector<float>> values;
  for (const PersistentTensor& parameter : session.memory().parameters())
    values.push_back(session.tensors().read(parameter));
  return values;
}

float root_mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return static_cast<float>(std::sqrt(sum / static_cast<double>(values.size())));
}

// The repeated values must have the magnitude of the others, so that a timed step computes with
// numbers as in training.
TEST(SessionTensors, RepeatedInitialValuesHaveTheMagnitudeOfAll) {
  const auto all = initial_values(true), repeated = initial_values(false);
  ASSERT_EQ(all.size(), repeated.size());
  bool differ = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].size(), repeated[i].size());
    EXPECT_NEAR(root_mean_square(repeated[i]), root_mean_square(all[i]), 0.02F * root_mean_square(all[i]))
        << i;
    differ = differ || all[i] != repeated[i];
  }
  EXPECT_TRUE(differ) << "no tensor is larger than the values that are drawn";
}

}  // namespace
}  // namespace convoy::app
