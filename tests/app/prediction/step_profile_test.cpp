// Tests profiles as `bench step --layers --json` prints them, and files that are no profiles.
#include "app/prediction/step_profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace convoy::app {
namespace {

using Json = nlohmann::json;

class StepProfileFile : public testing::Test {
 protected:
  ~StepProfileFile() override { std::filesystem::remove(file_); }

  StepProfile read(const std::string& text) const {
    std::ofstream(file_) << text;
    return read_profile(file_);
  }
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  }
  // Returns the first line of a profile, with some values changed.
  static std::string head(const Json& changes = Json::object()) {
    Json line{{"model", "lenet"}, {"backend", "cuda"}, {"precision", "fp32"}, {"ranks", 1},
              {"batch", 8},       {"size", 32},        {"ms", 8.0},           {"ms_mean", 9.0}};
    line.update(changes);
    return line.dump() + "\n";
  }

 private:
  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("profile-" + std::to_string(::getpid()));
};

TEST_F(StepProfileFile, IsReadAsItIsPrinted) {
  const StepProfile profile = read(head() + R"({"layer":"conv1","op":"conv2d_forward","ms":4.0}
{"layer":"parameters","op":"optimizer_update","ms":2.0}
{"layer":"all","op":"conv2d_forward","ms":4.0}
)");
  ASSERT_EQ(profile.operations.size(), 2u);
  EXPECT_EQ(profile.backend, kernels::Backend::cuda);
  EXPECT_DOUBLE_EQ(profile.ms(), 9);  // the operations are scaled to the mean time of a step
  EXPECT_DOUBLE_EQ(profile.operations[0].ms, 6);
  EXPECT_TRUE(profile.operations[1].after_gradients);
}

// One rank alone updates large parameters inside backward (compile/early_updates.h). Several ranks,
// for which profiles are made, do so after they have summed the gradients.
TEST_F(StepProfileFile, PutsAllUpdatesAfterTheGradients) {
  const StepProfile profile = read(head() + R"({"layer":"fc","op":"linear_backward_weights","ms":1.0}
{"layer":"fc","op":"optimizer_update","ms":2.0}
{"layer":"conv1","op":"conv2d_backward_weights","ms":4.0}
{"layer":"parameters","op":"optimizer_update","ms":2.0}
)");
  ASSERT_EQ(profile.operations.size(), 3u);
  EXPECT_EQ(profile.operations[1].layer, "conv1");
  EXPECT_FALSE(profile.operations[1].after_gradients);
  EXPECT_EQ(profile.operations[2].layer, "parameters");
  EXPECT_TRUE(profile.operations[2].after_gradients);
  EXPECT_FALSE(profile.operations[2].per_sample);
  EXPECT_DOUBLE_EQ(profile.operations[2].ms, 4);  // of 9 ms, as the step's mean
}

TEST_F(StepProfileFile, NamesTheFieldThatIsWrong) {
  Json without_mean = Json::parse(head());
  without_mean.erase("ms_mean");
  // This JSON is nested so deeply that dump() would overflow the stack.
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {head({{"ranks", 2}}), "expected a profile of 1"},
           {head({{"batch", 0}}), "batch: found 0, expected 1 to 16777216"},
           {head({{"size", 1000000000}}), "size: found 1000000000, expected 1 to 16384"},
           {head({{"backend", "tpu"}}), "backend: found 'tpu', expected one of cpu, cuda, reference"},
           {head({{"precision", "fp99"}}), "precision: found 'fp99', expected one of fp32, tf32, bf16"},
           {without_mean.dump(), "no \"ms_mean\""},
           {R"({"model":)" + deep + "}", "no \"model\" of its kind"},
           {head(), "no operations"},
           {head() + "[]", "found '[]', expected JSON"},
           {head() + R"({"op":"conv2d_forward","ms":4.0})", "no \"layer\""},
           {head() + R"({"layer":7,"op":"conv2d_forward","ms":4.0})", "no \"layer\""},
           {head() + R"({"layer":"conv1","ms":4.0})", "no \"op\""},
           {head() + R"({"layer":"conv1","op":"conv2d_forward","ms":"4"})", "no \"ms\""},
           {head() + R"({"layer":"conv1","op":"conv2d_forward","ms":-4.0})",
            "ms: found -4, expected 0 to 1000000000"}})
    EXPECT_NE(refusal(text).find(said), std::string::npos) << said << ": " << refusal(text).substr(0, 200);
}

}  // namespace
}  // namespace convoy::app
