// Tests metrics.jsonl, which scripts read. Every line must be one object, and a resumed run must
// not write a step twice.
#include "app/training/report/metrics.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/training/checkpoint/checkpoint_fixture.h"

namespace convoy::app {
namespace {

using Json = nlohmann::json;

class Metrics : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    path_ = folder_ / "metrics.jsonl";
  }
  std::vector<Json> lines() const {
    std::vector<Json> result;
    std::istringstream stream(content_of(path_));
    for (std::string line; std::getline(stream, line);) result.push_back(Json::parse(line));
    return result;
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> result;
    for (const auto& line : lines()) result.push_back(line.at("step").get<std::int64_t>());
    return result;
  }
  std::filesystem::path path_;
};

using Steps = std::vector<std::int64_t>;

TEST_F(Metrics, OneObjectALineWithTheKeysOfTheContract) {
  MetricsWriter metrics(path_, std::nullopt);
  metrics.write(10, 0.5, StepMetricsLine{2.25, 0.1, 812.5, 40, 0.25, 1.5, 0.5, 0.75});
  metrics.write(20, 1, StepMetricsLine{}, TestMetricsLine{1.5, 0.5, 0.875});
  metrics.write(25, 1.25, std::nullopt, TestMetricsLine{1.25, 0.5, 0.875});
  ASSERT_EQ(lines().size(), 3u);
  EXPECT_EQ(lines()[0], Json::parse(R"({"step": 10, "epoch": 0.5, "loss": 2.25, "learning_rate": 0.1,
    "images_per_second": 812.5, "step_ms": 40.0, "data_wait_ms": 0.25, "exposed_comm_ms": 1.5, "top1": 0.5,
    "top5": 0.75})"));
  EXPECT_EQ(lines()[1].at("test_loss"), 1.5);
  EXPECT_TRUE(lines()[1].contains("loss"));
  EXPECT_EQ(lines()[2], Json::parse(R"({"step": 25, "epoch": 1.25, "test_loss": 1.25, "test_top1": 0.5,
    "test_top5": 0.875})"));
}

TEST_F(Metrics, EveryLineIsThereAtOnce) {
  MetricsWriter metrics(path_, std::nullopt);
  for (std::int64_t step = 1; step <= 3; ++step) {
    metrics.write(step, 0, StepMetricsLine{});
    EXPECT_EQ(lines().size(), static_cast<std::size_t>(step)) << "a killed run keeps what it measured";
  }
}

TEST_F(Metrics, NumbersThatAreNoneAreNull) {
  MetricsWriter metrics(path_, std::nullopt);
  metrics.write(1, 0, StepMetricsLine{.loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_TRUE(lines()[0].at("loss").is_null());
}

TEST_F(Metrics, NewRunBeginsAnew) {
  write_content(path_, "{\"step\": 1}\n");
  MetricsWriter metrics(path_, std::nullopt);
  metrics.write(5, 0, StepMetricsLine{});
  EXPECT_EQ(steps(), Steps{5});
}

TEST_F(Metrics, ResumedRunCutsLaterStepsAndHalfLines) {
  {
    MetricsWriter metrics(path_, std::nullopt);
    for (const std::int64_t step : {10, 20, 30, 40})
      metrics.write(step, 0, StepMetricsLine{.loss = 1.0 / step});
  }
  const auto first_two = content_of(path_).substr(0, content_of(path_).find("{\"step\":30"));
  write_content(path_, content_of(path_) + "{\"step\":50,\"epo");
  MetricsWriter metrics(path_, 20);
  EXPECT_EQ(content_of(path_), first_two) << "kept lines are kept to the byte";
  metrics.write(30, 0, StepMetricsLine{});
  EXPECT_EQ(steps(), (Steps{10, 20, 30}));
}

TEST_F(Metrics, ResumedRunDropsWhatIsNoMetrics) {
  write_content(path_, "garbage\n[1]\n{\"step\": \"7\"}\n{\"loss\": 1}\n\n{\"step\": 7}\n");
  MetricsWriter metrics(path_, 7);
  EXPECT_EQ(content_of(path_), "{\"step\": 7}\n");
}

TEST_F(Metrics, ResumedRunWithoutItsFileBeginsOne) {
  MetricsWriter metrics(path_, 100);
  metrics.write(110, 0, StepMetricsLine{});
  EXPECT_EQ(steps(), Steps{110});
}

TEST_F(Metrics, PlaceThatCannotBeWrittenIsNamed) {
  const auto path = folder_ / "none" / "metrics.jsonl";
  EXPECT_EQ(error_of([&] { MetricsWriter(path, std::nullopt); }),
            path.string() + ": cannot write: No such file or directory");
  MetricsWriter full("/dev/full", std::nullopt);
  EXPECT_EQ(error_of([&] { full.write(1, 0, StepMetricsLine{}); }),
            "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace convoy::app
