// Compares networks that PyTorch exported with PyTorch's own results: the logits of an evaluation,
// and the loss, every gradient and the running statistics of a training step. onnx_oracles.py
// writes the files and the results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/model/import/model_file.h"
#include "tests/app/graph/graph_runner.h"

namespace convoy::app {
namespace {

using Records = std::map<std::string, std::vector<float>>;

Records read_records(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  Records records;
  const auto number = [&] {
    std::int64_t value = 0;
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    return static_cast<std::size_t>(value);
  };
  while (file.peek() != std::ifstream::traits_type::eof()) {
    std::string name(number(), ' ');
    file.read(name.data(), static_cast<std::streamsize>(name.size()));
    std::vector<float> values(number());
    file.read(reinterpret_cast<char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
    records[name] = std::move(values);
  }
  return records;
}

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * value;
  return std::sqrt(sum);
}

// Compares the norm of the difference with the norm of the expected values, or with `least` if that
// is larger.
void expect_close(const std::vector<float>& found, const std::vector<float>& expected, double tolerance,
                  double least, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  std::vector<float> difference(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) difference[i] = found[i] - expected[i];
  EXPECT_LE(norm_of(difference), tolerance * std::max(norm_of(expected), least)) << what;
}

class Oracle {
 public:
  Oracle(const std::filesystem::path& file, const Records& expected)
      : expected_(expected), network_(make(file, expected)) {}

  void compare(const std::string& what) const {
    const Network fused = fuse(network_);
    GraphRunner evaluation(fused, {.training = false}, kernels::Backend::cpu);
    fill(evaluation);
    evaluation.run();
    expect_close(evaluation.read(evaluation.logits()), expected_.at("logits"), 1e-4, 0, what + " logits");
    GraphRunner training(fused, {}, kernels::Backend::cpu);
    fill(training);
    EXPECT_NEAR(training.run(), expected_.at("loss")[0], 1e-4 * expected_.at("loss")[0]) << what;
    compare_gradients(training, what);
    for (const auto& [tensor, spec] : training.graph().states)
      expect_close(training.read(tensor), expected_.at("state:" + spec.name), 1e-4, 0,
                   what + " " + spec.name);
  }

 private:
  static Network make(const std::filesystem::path& path, const Records& expected) {
    const ModelFile file(path.string());
    const Shape image = file.image();
    return file.network({std::ssize(expected.at("labels")), image[0], image[1], image[2]}, file.classes());
  }

  void fill(GraphRunner& runner) const {
    runner.write(runner.graph().images, expected_.at("images"));
    for (std::size_t i = 0; i < expected_.at("labels").size(); ++i)
      runner.labels()[i] = static_cast<std::int32_t>(expected_.at("labels")[i]);
  }

  void compare_gradients(const GraphRunner& runner, const std::string& what) const {
    double largest = 0;
    std::size_t count = 0;
    for (const auto& [name, values] : expected_)
      if (name.starts_with("gradient:")) largest = std::max(largest, norm_of(values)), ++count;
    const auto gradients = runner.gradients();
    EXPECT_EQ(gradients.size(), count) << what;
    // A bias before a batch norm has the gradient zero plus rounding errors. So the tolerance is
    // relative to at least 1/1000 of the largest gradient.
    for (const auto& [name, found] : gradients) {
      ASSERT_TRUE(expected_.contains("gradient:" + name)) << what << " " << name;
      expect_close(found, expected_.at("gradient:" + name), 1e-3, 1e-3 * largest, what + " " + name);
    }
  }

  const Records& expected_;
  const Network network_;
};

TEST(OnnxOracle, NetworksOfPyTorchComputeWhatPyTorchDoes) {
  if (std::system("/usr/bin/python3 -c 'import torchvision, onnx' 2>/dev/null") != 0)
    GTEST_SKIP() << "needs python3-torchvision and python3-onnx";
  const auto folder =
      std::filesystem::temp_directory_path() / ("convoy_onnx_oracles." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string command =
      "/usr/bin/python3 -W ignore " CONVOY_MODEL_TESTS "/onnx_oracles.py '" + folder.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  int networks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    const Records expected = read_records(folder / (name + ".values"));
    EXPECT_NO_THROW(Oracle(entry.path(), expected).compare(name)) << name;
    ++networks;
  }
  EXPECT_GE(networks, 30);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace convoy::app
