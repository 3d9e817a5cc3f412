#include "app/training/report/predictions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace convoy::app {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<int> ranked(const std::vector<float>& probabilities, std::size_t top) {
  std::vector<RankedClass> classes(top, {-1, 0});
  rank_classes(probabilities, classes);
  std::vector<int> numbers;
  for (const RankedClass& one : classes) {
    numbers.push_back(one.number);
    const float expected = one.number < 0 ? 0 : probabilities[static_cast<std::size_t>(one.number)];
    EXPECT_TRUE(one.probability == expected || std::isnan(expected)) << one.probability;
  }
  return numbers;
}

TEST(Predictions, TheMostProbableClassesComeFirst) {
  EXPECT_EQ(ranked({0.1f, 0.4f, 0.2f, 0.3f}, 3), (std::vector{1, 3, 2}));
  // If two classes are equally probable, the lower number comes first.
  EXPECT_EQ(ranked({0.2f, 0.4f, 0.2f, 0.2f}, 4), (std::vector{1, 0, 2, 3}));
  EXPECT_EQ(ranked({kNan, 0.4f, kNan, 0.6f}, 4), (std::vector{3, 1, 0, 2}));
  EXPECT_EQ(ranked({0.4f, 0.6f}, 3), (std::vector{1, 0, -1}));  // there are only two classes
}

class PredictionTables : public testing::Test {
 protected:
  PredictionTables() { std::filesystem::create_directories(folder_); }
  ~PredictionTables() override { std::filesystem::remove_all(folder_); }
  std::string text() const {
    std::ifstream file(out());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string out() const { return folder_ / "out.csv"; }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("convoy-predictions-" + std::to_string(::getpid()));
  const std::vector<std::string> classes_{"cat", "dog, big", "the \"fox\""};
  const std::array<RankedClass, 2> top_{{{1, 0.75f}, {2, 1e-7f}}};
};

TEST_F(PredictionTables, FieldsAreQuotedAsRfc4180Says) {
  PredictionTable table(out(), PredictionTable::Form::csv, "path", classes_, 2);
  table.add("a \"b\", c\ny.png", top_);
  table.add("plain.png", top_);
  table.finish();
  EXPECT_EQ(text(),
            "path,class_1,probability_1,class_2,probability_2\n"
            "\"a \"\"b\"\", c\ny.png\",\"dog, big\",0.75,\"the \"\"fox\"\"\",1e-07\n"
            "plain.png,\"dog, big\",0.75,\"the \"\"fox\"\"\",1e-07\n");
}

TEST_F(PredictionTables, StandardOutputStaysEmptyUntilTheFirstLine) {
  testing::internal::CaptureStdout();
  { PredictionTable table("-", PredictionTable::Form::csv, "path", classes_, 1); }
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  testing::internal::CaptureStdout();
  PredictionTable table("-", PredictionTable::Form::csv, "path", classes_, 1);
  table.finish();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "path,class_1,probability_1\n");
}

TEST_F(PredictionTables, JsonHasAnObjectALine) {
  PredictionTable table(out(), PredictionTable::Form::json, "path", classes_, 2);
  table.add("a \"b\" \xff.png", top_);
  table.add("c.png", std::array<RankedClass, 1>{{{0, kNan}}});
  table.finish();
  EXPECT_EQ(
      text(),
      "{\"path\": \"a \\\"b\\\" \xEF\xBF\xBD.png\", \"classes\": [{\"class\": \"dog, big\", \"probability\": "
      "0.75}, {\"class\": \"the \\\"fox\\\"\", \"probability\": 1e-07}]}\n"
      "{\"path\": \"c.png\", \"classes\": [{\"class\": \"cat\", \"probability\": null}]}\n");
}

TEST_F(PredictionTables, AFileAppearsWhole) {
  {
    PredictionTable table(out(), PredictionTable::Form::csv, "index", classes_, 2);
    table.add(7, top_);
    EXPECT_FALSE(std::filesystem::exists(out()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  PredictionTable table(out(), PredictionTable::Form::csv, "index", classes_, 1);
  table.add(7, std::span(top_).first(1));
  table.finish();
  EXPECT_EQ(text(), "index,class_1,probability_1\n7,\"dog, big\",0.75\n");
}

TEST_F(PredictionTables, LinesAreAppendedAfterCompleteOnes) {
  const std::string header = "path,class_1,probability_1,class_2,probability_2\n";
  const auto append = [&](const std::string& image) {
    PredictionTable table(PredictionTable::Appended(), out(), "path", classes_, 2);
    table.add(image, top_);
    table.flush();
    return table.earlier();
  };
  const std::string rest = ",\"dog, big\",0.75,\"the \"\"fox\"\"\",1e-07\n";
  EXPECT_EQ(append("a, \"b\"\nc.png"), std::vector<std::string>());
  const std::string first = header + "\"a, \"\"b\"\"\nc.png\"" + rest;
  EXPECT_EQ(text(), first);
  EXPECT_EQ(append("d.png"), std::vector<std::string>{"a, \"b\"\nc.png"});
  const std::string whole = first + "d.png" + rest;
  EXPECT_EQ(text(), whole);
  // Wherever a crash has cut the file off, the complete lines stay.
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(out(), std::ios::binary) << whole.substr(0, size);
    const std::size_t lines = size < first.size() ? 0 : 1;
    ASSERT_EQ(append("e.png").size(), lines) << size;
    ASSERT_EQ(text(), (lines == 0 ? header : first) + "e.png" + rest) << size;
  }
}

TEST_F(PredictionTables, NothingIsAppendedToAnotherTable) {
  const auto message = [&](const std::string& content) {
    std::ofstream(out(), std::ios::binary) << content;
    std::string found;
    try {
      PredictionTable(PredictionTable::Appended(), out(), "path", classes_, 1);
    } catch (const std::runtime_error& error) {
      found = error.what();
    }
    EXPECT_EQ(text(), content);
    EXPECT_EQ(found.find('\n'), std::string::npos);
    return found;
  };
  EXPECT_NE(message("path,class_1\na,b\n").find("out.csv: found the header 'path,class_1', expected 'path,"),
            std::string::npos);
  EXPECT_NE(message("my notes").find("found the header 'my notes'"), std::string::npos);
  EXPECT_NE(message("path,class_1,probability_1\n\"a\"b,c,1\nxyz,c,1\n").find("out.csv: line 2: found 'b'"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::app
