// Provides a small checkpoint state that has every kind of value, and a separate folder for each
// test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {

inline SavedTensor ramp(std::string name, kernels::Shape shape, float first) {
  SavedTensor tensor{{std::move(name), shape},
                     std::vector<float>(static_cast<std::size_t>(shape.elements()))};
  for (auto& value : tensor.values) value = first += 0.37f;
  return tensor;
}

inline CheckpointState example_state(std::int64_t step = 1234) {
  CheckpointState state;
  state.model = "resnet18";
  state.classes = 10;
  state.input_shape = {3, 32, 32};
  state.parameters = {ramp("stem.weight", {4, 3, 2, 2}, static_cast<float>(step)), ramp("a.bias", {4}, -1)};
  state.parameters[1].values = {std::bit_cast<float>(0x7fc12345u), -0.0f,
                                std::numeric_limits<float>::denorm_min(),
                                -std::numeric_limits<float>::infinity()};
  state.statistics = {ramp("stem.running_mean", {4}, 0), ramp("stem.running_var", {4}, 1)};
  state.optimizer = {ramp("stem.weight.momentum", {4, 3, 2, 2}, 0), ramp("a.bias.momentum", {4}, 0)};
  state.averages = {ramp("stem.weight", {4, 3, 2, 2}, 9), ramp("a.bias", {4}, 8),
                    ramp("stem.running_mean", {4}, 7), ramp("stem.running_var", {4}, 6)};
  for (int label = 0; label < 10; ++label)
    state.class_names.push_back("käfer " + std::string(label * 20, 'x'));
  state.epoch = 7;
  state.step = step;
  state.sample = 51200;
  state.seed = 0xfedcba9876543210u;
  state.best_accuracy = 0.1 + 0.2;
  state.mean = {0.49f, 0.48f, 0.44f};
  state.std = {0.2f, 0.21f, 0.22f};
  state.options_json = R"({"model":"resnet18","data":"fürsorge.h5"})";
  return state;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

inline bool same_tensors(const std::vector<SavedTensor>& a, const std::vector<SavedTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SavedTensor& x, const SavedTensor& y) {
    return x.name == y.name && x.shape == y.shape && same_bits(x.values, y.values);
  });
}

inline void expect_same(const CheckpointState& a, const CheckpointState& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.input_shape, b.input_shape);
  EXPECT_TRUE(same_tensors(a.parameters, b.parameters));
  EXPECT_TRUE(same_tensors(a.statistics, b.statistics));
  EXPECT_TRUE(same_tensors(a.optimizer, b.optimizer));
  EXPECT_TRUE(same_tensors(a.averages, b.averages));
  EXPECT_EQ(a.class_names, b.class_names);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.sample, b.sample);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(a.best_accuracy), std::bit_cast<std::uint64_t>(b.best_accuracy));
  EXPECT_TRUE(same_bits(a.mean, b.mean) && same_bits(a.std, b.std));
  EXPECT_EQ(a.options_json, b.options_json);
}

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

inline void write_content(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    // Use a folder in memory if possible. Writing hundreds of files to a disk would take most of
    // the time of these tests.
    const std::filesystem::path memory = "/dev/shm";
    folder_ = (::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::path(testing::TempDir())) /
              (std::string(test->test_suite_name()) + "." + test->name() + "." + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

}  // namespace convoy::app
