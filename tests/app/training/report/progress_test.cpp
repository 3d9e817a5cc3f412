// Tests the progress lines that people read during a run. The tests set the clock, so times are
// exact.
#include "app/training/report/progress.h"

#include <gtest/gtest.h>

#include <sstream>

#include "app/training/report/configuration_table.h"

namespace convoy::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ProgressOutput : public testing::Test {
 protected:
  Progress make(bool interactive, int columns = 200) {
    return Progress(
        &out_,
        {.terminal = {interactive, columns}, .log_every = 10, .total_steps = 100, .steps_per_epoch = 40},
        [this] { return now_; });
  }
  std::string take() {
    std::string text = out_.str();
    out_.str("");
    return text;
  }
  std::ostringstream out_;
  Progress::Clock::time_point now_{};
};

TEST_F(ProgressOutput, PlainLinesEverySoManySteps) {
  auto progress = make(false);
  for (std::int64_t step = 1; step <= 20; ++step) {
    progress.step({step, 2.30258, 0.0980392, 812.4});
    now_ += seconds(1);
  }
  EXPECT_EQ(take(),
            "epoch 1/3  step 10/100  loss 2.3026  rate 0.09804  812 images/s  left 1:30\n"
            "epoch 1/3  step 20/100  loss 2.3026  rate 0.09804  812 images/s  left 1:20\n");
  progress.step({40, 1, 0.5, 99.94});
  EXPECT_EQ(take().substr(0, 61), "epoch 1/3  step 40/100  loss 1.0000  rate 0.5  99.9 images/s ");
  progress.step({41, 1, 0.5, 99.94});
  EXPECT_EQ(take(), "");
  progress.message("test: 71.2 %");
  EXPECT_EQ(take(), "test: 71.2 %\n");
  progress.finish();
  EXPECT_EQ(take(), "");
}

TEST_F(ProgressOutput, LastStepIsToldWhereTheIntervalDoesNotDivideIt) {
  Progress progress(&out_, {.log_every = 10, .total_steps = 17, .steps_per_epoch = 40},
                    [this] { return now_; });
  for (std::int64_t step = 11; step <= 17; ++step) progress.step({step, 1, 1e-6, 1});
  EXPECT_EQ(take(), "epoch 1/1  step 17/17  loss 1.0000  rate 1e-06  1.0 images/s  left 0:00\n");
}

TEST_F(ProgressOutput, TerminalLineReplacesItself) {
  auto progress = make(true);
  progress.step({1, 2, 0.1, 800});
  EXPECT_EQ(take(), "\repoch 1/3  step 1/100  loss 2.0000  rate 0.1  800 images/s\x1b[K");
  now_ += milliseconds(99);
  progress.step({2, 2, 0.1, 800});
  EXPECT_EQ(take(), "") << "ten times a second is enough";
  now_ += milliseconds(1901);
  progress.step({3, 2, 0.1, 800});
  EXPECT_EQ(take(), "\repoch 1/3  step 3/100  loss 2.0000  rate 0.1  800 images/s  left 1:37\x1b[K");
  progress.message("checkpoint");
  EXPECT_EQ(
      take(),
      "\rcheckpoint\x1b[K\n\repoch 1/3  step 3/100  loss 2.0000  rate 0.1  800 images/s  left 1:37\x1b[K");
  progress.step({100, 2, 0.1, 800});
  EXPECT_NE(take().find("step 100/100"), std::string::npos) << "the last step is drawn at once";
  progress.finish();
  EXPECT_EQ(take(), "\n");
  progress.finish();
  EXPECT_EQ(take(), "");
}

TEST_F(ProgressOutput, TerminalLineFitsTheTerminal) {
  auto progress = make(true, 20);
  progress.step({1, 2, 0.1, 800});
  EXPECT_EQ(take(), "\repoch 1/3  step 1/1\x1b[K");
}

TEST_F(ProgressOutput, OtherRanksAreSilent) {
  Progress progress(nullptr, {});
  progress.step({1, 2, 0.1, 800});
  progress.message("x");
  progress.finish();
}

TEST_F(ProgressOutput, ResumedRunTimesItsOwnSteps) {
  auto progress = make(false);
  progress.step({80, 1, 0.1, 100});
  take();
  now_ += seconds(20);
  progress.step({90, 1, 0.1, 100});
  EXPECT_EQ(take(), "epoch 3/3  step 90/100  loss 1.0000  rate 0.1  100 images/s  left 0:20\n");
}

TEST(FormatDuration, FromSecondsToDays) {
  EXPECT_EQ(format_duration(seconds(0)), "0:00");
  EXPECT_EQ(format_duration(seconds(59)), "0:59");
  EXPECT_EQ(format_duration(seconds(3599)), "59:59");
  EXPECT_EQ(format_duration(seconds(3600)), "1:00:00");
  EXPECT_EQ(format_duration(seconds(2 * 86400 + 3 * 3600 + 4 * 60 + 5)), "2d 03:04:05");
}

TEST(ConfigurationTable, ColumnsSectionsAndWrapping) {
  ConfigurationTable table;
  table.section("Model");
  table.row("network", "resnet18");
  table.row("parameters", with_thousands(11173962));
  table.section("Data");
  table.row("file", "a long value that does not fit into one line of it");
  EXPECT_EQ(table.render(40),
            "Model ──────────────────────────────────\n"
            "  network     resnet18\n"
            "  parameters  11,173,962\n"
            "Data ───────────────────────────────────\n"
            "  file        a long value that does not\n"
            "              fit into one line of it\n");
}

TEST(ConfigurationTable, RanksByOneOrJoined) {
  std::vector<RankPlace> places{
      {"node1", "cpu", {0, 1, 2, 3}}, {"node1", "cpu", {4, 6}}, {"node2", "cpu", {5}}};
  ConfigurationTable few;
  few.section("Ranks");
  few.ranks(places);
  const auto text = few.render(60);
  EXPECT_NE(text.find("  rank 0  node1, cpu, cores 0-3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  rank 1  node1, cpu, cores 4,6\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  rank 2  node2, cpu, cores 5\n"), std::string::npos) << text;
  places.assign(8, {"node1", "cpu", {0}});
  places.insert(places.end(), 9, {"node2", "cpu", {0}});
  ConfigurationTable many;
  many.section("Ranks");
  many.ranks(places);
  EXPECT_NE(many.render(60).find("  ranks 8-16  node2, cpu, 1 cores each\n"), std::string::npos)
      << many.render(60);
}

TEST(ConfigurationTable, Figures) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes((1ull << 20) - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(3ull << 29), "1.50 GiB");
}

}  // namespace
}  // namespace convoy::app
