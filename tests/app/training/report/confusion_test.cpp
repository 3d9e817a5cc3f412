#include "app/training/report/confusion.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <stdexcept>

namespace convoy::app {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ConfusionMatrix, CountsLabelledRowsByWhatTheNetworkNamed) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("convoy-confusion-" + std::to_string(::getpid()));
  ConfusionMatrix matrix({"a", "b, c", "dog", "none"});
  const std::vector<std::int32_t> labels{0, 0, 0, 0, 1, 2, -1};
  const std::vector<float> probabilities{
      0.7f, 0.1f, 0.1f, 0.1f,   // class "a" is taken for "a"
      0.1f, 0.7f, 0.1f, 0.1f,   // class "a" is taken for "b, c"
      0.1f, 0.7f, 0.1f, 0.1f,   // again class "a" for "b, c"
      0.1f, 0.1f, 0.7f, 0.1f,   // class "a" is taken for "dog"
      0.4f, 0.4f, 0.1f, 0.1f,   // class "b, c" is taken for "a": in a tie the lower number wins
      0.1f, 0.1f, 0.7f, 0.1f,   // class "dog" is taken for "dog"
      0.7f, 0.1f, 0.1f, 0.1f};  // the row has no label
  matrix.add(labels, probabilities);
  EXPECT_EQ(matrix.count(0, 1), 2);
  EXPECT_EQ(matrix.count(1, 0), 1);
  matrix.write(folder / "deep");
  EXPECT_EQ(text_of(folder / "deep/confusion.csv"),
            "class,a,\"b, c\",dog,none\na,1,2,1,0\n\"b, c\",1,0,0,0\ndog,0,0,1,0\nnone,0,0,0,0\n");
  EXPECT_EQ(text_of(folder / "deep/classes.csv"),
            "class,images,correct,accuracy,most_confused_with,confused_images\n"
            "a,4,1,0.25,\"b, c\",2\n\"b, c\",1,0,0,a,1\ndog,1,1,1,,0\nnone,0,0,,,0\n");
  std::filesystem::remove_all(folder);
}

TEST(ConfusionMatrix, CountsNoImageWhoseProbabilitiesAreNotNumbers) {
  ConfusionMatrix matrix({"a", "b"});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  matrix.add(std::vector<std::int32_t>{1, -1, 1}, std::vector{nan, nan, nan, nan, 0.5f, 0.5f});
  EXPECT_EQ(matrix.count(1, 0), 1);
  EXPECT_EQ(matrix.count(1, 1), 0);
}

}  // namespace
}  // namespace convoy::app
