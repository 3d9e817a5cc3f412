// Tests that the import evaluates the nodes of a model file that compute only shapes.
#include "app/model/import/constants.h"

#include <gtest/gtest.h>

#include <limits>

namespace convoy::app::onnx_import {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min();

Constant vector(std::vector<std::int64_t> values) {
  const Dims dims{std::ssize(values)};
  return Constant::of_integers(dims, std::move(values));
}

std::optional<Constant> result(const std::string& op, const std::vector<Constant>& inputs,
                               std::map<std::string, Attribute> attributes = {}) {
  const FileNode node{
      "n", op, {}, std::vector<std::string>(inputs.size(), "v"), {"out"}, std::move(attributes), 0};
  std::vector<const Constant*> pointers;
  for (const Constant& input : inputs) pointers.push_back(&input);
  return evaluate(node, pointers);
}

TEST(Constants, DivideAndWrapAsIntegersDo) {
  EXPECT_EQ(result("Div", {vector({7, -7}), vector({2})})->integers, (Dims{3, -3}));
  EXPECT_EQ(result("Mod", {vector({7, -7}), vector({3})})->integers, (Dims{1, 2}));
  EXPECT_EQ(result("Div", {vector({kLeast}), vector({-1})})->integers, (Dims{kLeast}));
  EXPECT_EQ(result("Add", {vector({kMost}), vector({1})})->integers, (Dims{kLeast}));
  EXPECT_EQ(result("Neg", {vector({kLeast})})->integers, (Dims{kLeast}));
  EXPECT_THROW(result("Div", {vector({1}), vector({0})}), std::runtime_error);
}

TEST(Constants, BroadcastAndRefuseWhatDoesNotFit) {
  const Constant column = Constant::of_integers({2, 1}, {10, 20});
  const auto sum = result("Add", {column, vector({1, 2, 3})});
  EXPECT_EQ(sum->dims, (Dims{2, 3}));
  EXPECT_EQ(sum->integers, (Dims{11, 12, 13, 21, 22, 23}));
  EXPECT_THROW(result("Add", {vector({1, 2}), vector({1, 2, 3})}), std::runtime_error);
  EXPECT_THROW(result("Expand", {vector({1}), vector({1 << 20})}), std::runtime_error);
}

TEST(Constants, SliceFromBothEndsAndBackwards) {
  const Constant five = vector({0, 1, 2, 3, 4});
  const auto sliced = [&](std::int64_t from, std::int64_t to, std::int64_t step) {
    return result("Slice", {five, vector({from}), vector({to}), vector({0}), vector({step})})->integers;
  };
  EXPECT_EQ(sliced(1, -1, 1), (Dims{1, 2, 3}));
  EXPECT_EQ(sliced(-2, kMost, 1), (Dims{3, 4}));
  EXPECT_EQ(sliced(-1, kLeast, -1), (Dims{4, 3, 2, 1, 0}));
  EXPECT_EQ(sliced(0, kMost, kMost), (Dims{0}));
  EXPECT_EQ(sliced(3, 1, 1), (Dims{}));
  EXPECT_THROW(sliced(0, 1, 0), std::runtime_error);
  const Constant table = Constant::of_integers({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(result("Slice", {table, vector({-1}), vector({kLeast}), vector({0}), vector({-1})})->integers,
            (Dims{3, 4, 1, 2}));
}

TEST(Constants, ReshapeWithOpenAndKeptExtents) {
  const Constant table = Constant::of_integers({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(result("Reshape", {table, vector({-1})})->dims, (Dims{6}));
  EXPECT_EQ(result("Reshape", {table, vector({0, -1, 1})})->dims, (Dims{2, 3, 1}));
  EXPECT_THROW(result("Reshape", {table, vector({4, -1})}), std::runtime_error);
  EXPECT_THROW(result("Reshape", {table, vector({kMost, kMost, -1})}), std::runtime_error);
  EXPECT_EQ(result("Unsqueeze", {table, vector({0, -1})})->dims, (Dims{1, 2, 3, 1}));
  EXPECT_EQ(result("Transpose", {table})->integers, (Dims{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(result("Gather", {table, vector({-1})}, {{"axis", std::int64_t{1}}})->integers, (Dims{3, 6}));
}

TEST(Constants, OfWeightsAreOnlyMoved) {
  Constant weight = Constant::of_reals({2, 2}, {1, 2, 3, 4});
  weight.name = "w";
  EXPECT_EQ(result("Transpose", {weight})->name, "w");
  EXPECT_EQ(*result("Transpose", {weight})->reals, (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(result("Identity", {weight})->name, "out");
  EXPECT_FALSE(result("Mul", {weight, Constant::of_reals({}, {2})}));
  EXPECT_FALSE(result("Sqrt", {weight}));
}

}  // namespace
}  // namespace convoy::app::onnx_import
