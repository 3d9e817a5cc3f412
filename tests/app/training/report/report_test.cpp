// Tests the contents of manifest.json and summary.json, the statistics of step times and memory,
// the error of a training that diverges, and the handling of stop signals.
#include "app/training/report/report.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "app/training/report/build_info.h"
#include "app/training/report/metrics.h"
#include "app/training/report/step_times.h"
#include "app/training/signals.h"
#include "tests/app/training/checkpoint/checkpoint_fixture.h"

namespace convoy::app {
namespace {

using Json = nlohmann::json;
using Report = FolderTest;

TEST_F(Report, SummaryHasTheContractsKeys) {
  Summary summary;
  summary.model = "lenet";
  summary.devices = {"cpu", "cpu"};
  summary.ranks = 2;
  summary.images_per_second = 812.25;
  summary.test_accuracy = std::nan("");
  summary.peak_device_bytes = std::int64_t{1} << 40;
  summary.peak_host_bytes = std::int64_t{3} << 40;
  summary.memory_bytes = {{"parameters", 4096}, {"gradients", std::int64_t{1} << 33}};
  write_summary(folder_ / "summary.json", summary);
  const auto json = Json::parse(content_of(folder_ / "summary.json"));
  std::set<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"model",
                                         "backend",
                                         "precision",
                                         "ranks",
                                         "devices",
                                         "global_batch",
                                         "epochs",
                                         "steps",
                                         "images_per_second",
                                         "step_ms_median",
                                         "step_ms_p95",
                                         "train_loss",
                                         "test_accuracy",
                                         "exposed_comm_ms",
                                         "data_wait_ms",
                                         "peak_device_bytes",
                                         "peak_host_bytes",
                                         "memory_bytes",
                                         "limited_by",
                                         "slowest_rank",
                                         "rank_times",
                                         "parameters_sha256"}));
  EXPECT_EQ(json.at("devices"), Json({"cpu", "cpu"}));
  EXPECT_EQ(json.at("images_per_second"), 812.25);
  EXPECT_TRUE(json.at("test_accuracy").is_null());
  EXPECT_EQ(json.at("peak_device_bytes"), std::int64_t{1} << 40);
  EXPECT_EQ(json.at("peak_host_bytes"), std::int64_t{3} << 40);
  EXPECT_EQ(json.at("memory_bytes"), (Json{{"parameters", 4096}, {"gradients", std::int64_t{1} << 33}}));
}

TEST_F(Report, ManifestSaysWhatRanWhereAndWhen) {
  Manifest manifest;
  manifest.command_line = {"convoy", "train", "--data", "f\xfcr.h5"};
  manifest.ranks = {{"node1", "cpu", {0, 1}}, {"node2", "cuda:0 NVIDIA H200", {}}};
  manifest.start_time = std::chrono::system_clock::time_point(std::chrono::seconds(951827696));
  write_manifest(folder_ / "manifest.json", manifest, Json{{"seed", 3}});
  const auto json = Json::parse(content_of(folder_ / "manifest.json"));
  EXPECT_EQ(json.at("command_line").at(1), "train");
  EXPECT_EQ(
      json.at("ranks").at(1),
      (Json{{"rank", 1}, {"host", "node2"}, {"device", "cuda:0 NVIDIA H200"}, {"cores", Json::array()}}));
  EXPECT_EQ(json.at("ranks").at(0).at("cores"), Json({0, 1}));
  EXPECT_EQ(json.at("start_time"), "2000-02-29T12:34:56Z");
  EXPECT_EQ(json.at("options").at("seed"), 3);
  EXPECT_TRUE(json.at("resumed_step").is_null());
  EXPECT_EQ(json.at("version"), convoy_version());
  EXPECT_EQ(json.at("git_hash"), git_hash());
  for (const char* library : {"MPI", "HDF5", "oneDNN"}) {
    EXPECT_TRUE(json.at("libraries").at(library).get<std::string>().find_first_of("0123456789") !=
                std::string::npos)
        << library;
  }
  manifest.resumed_step = 1200;
  write_manifest(folder_ / "manifest.json", manifest, Json::object());
  EXPECT_EQ(Json::parse(content_of(folder_ / "manifest.json")).at("resumed_step"), 1200);
}

TEST_F(Report, PlaceThatCannotBeWrittenIsNamed) {
  const auto path = folder_ / "none" / "summary.json";
  EXPECT_EQ(error_of([&] { write_summary(path, {}); }).rfind(path.string() + ": ", 0), 0u);
}

TEST(RecentRate, AShortLastBatchIsOneOfMany) {
  RecentRate rate;
  EXPECT_DOUBLE_EQ(rate.add({.step_ms = 1000, .images = 32}),
                   32);  // the first step is not part of any average
  for (int step = 2; step <= 9; ++step) EXPECT_DOUBLE_EQ(rate.add({.step_ms = 10, .images = 32}), 3200);
  EXPECT_DOUBLE_EQ(rate.add({.step_ms = 10, .images = 5}), (8 * 32 + 5) / 0.09);
  rate.restart();
  EXPECT_DOUBLE_EQ(rate.add({.step_ms = 20, .images = 32}), 1600);
}

TEST(StepTimes, QuantilesWithoutWarmUp) {
  StepTimes times(10, 2);
  for (const double ms : {500., 400., 3., 1., 2., 5., 4.}) times.add({.step_ms = ms, .images = 8});
  EXPECT_EQ(times.median_ms(), 3);
  EXPECT_EQ(times.p95_ms(), 5);
  EXPECT_EQ(times.quantile_ms(0.2), 1);
  EXPECT_EQ(times.quantile_ms(0.21), 2);
  EXPECT_DOUBLE_EQ(times.images_per_second(), 5 * 8 * 1000 / 15.0);
}

TEST(StepTimes, MedianOfAnEvenNumberIsBetween) {
  StepTimes times(4, 0);
  for (const double ms : {4., 1., 3., 2.}) times.add({.step_ms = ms});
  EXPECT_EQ(times.median_ms(), 2.5);
  EXPECT_EQ(times.p95_ms(), 4);
}

TEST(StepTimes, NinetyFifthOfAHundred) {
  StepTimes times(100, 0);
  for (int ms = 100; ms >= 1; --ms) times.add({.step_ms = static_cast<double>(ms)});
  EXPECT_EQ(times.p95_ms(), 95);
  EXPECT_EQ(times.median_ms(), 50.5);
}

TEST(StepTimes, ShortRunsCountEveryStep) {
  StepTimes times(2, 10);
  EXPECT_EQ(times.median_ms(), 0);
  EXPECT_EQ(times.images_per_second(), 0);
  times.add({.step_ms = 10, .data_wait_ms = 1, .exposed_comm_ms = 2, .images = 5});
  times.add({.step_ms = 30, .data_wait_ms = 2, .exposed_comm_ms = 4, .images = 5});
  EXPECT_EQ(times.median_ms(), 20);
  EXPECT_EQ(times.images_per_second(), 250);
  EXPECT_EQ(times.mean_data_wait_ms(), 1.5);
  EXPECT_EQ(times.mean_exposed_comm_ms(), 3);
}

// Written pages must count, even after they were given back, because the result is a peak. Memory
// that is reserved but never written must not count.
TEST(PeakMemory, IsThatOfTouchedPages) {
  const std::int64_t before = peak_resident_bytes();
  ASSERT_GT(before, 1 << 20);
  // A sanitizer uses an eighth of the reserved bytes for its own data, which counts in the peak.
  // `more` is larger than this eighth.
  const std::int64_t more = std::max<std::int64_t>(64 << 20, before / 4);
  const auto bytes = static_cast<std::size_t>(before + more);
  const auto reserved = std::make_unique_for_overwrite<char[]>(bytes);
  EXPECT_LT(peak_resident_bytes(), before + more);
  {
    const auto touched = std::make_unique_for_overwrite<char[]>(bytes);
    for (std::size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(touched.get())[i] = 1;
    EXPECT_GE(peak_resident_bytes(), before + more);
  }
  EXPECT_GE(peak_resident_bytes(), before + more);
  EXPECT_LT(peak_resident_bytes(), 3 * before + 2 * more);
}

TEST(Divergence, NamesStepLossAndRate) {
  EXPECT_NO_THROW(check_loss(1e30, 5, 0.1));
  EXPECT_EQ(
      error_of([] { check_loss(std::nan(""), 120, 0.8); })
          .rfind(
              "step 120: found a loss of nan, expected a finite one: training diverged at learning rate 0.8;",
              0),
      0u);
  const std::string negative = error_of([] { check_loss(std::copysign(std::nan(""), -1.0), 1, 0.1); });
  EXPECT_NE(negative.find("a loss of nan,"), std::string::npos) << negative;
  EXPECT_THROW(check_loss(-INFINITY, 1, 0.1), DivergenceError);
}

bool takes_stop_signals() {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, SIGUSR1) == 0 || sigismember(&blocked, SIGTERM) == 0;
}

bool come_to_an_end_after_signals() {
  {
    const StopSignals signals;
    const auto received = [&](int signal) {
      ::kill(::getpid(), signal);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (signals.received() != signal && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return signals.received() == signal;
    };
    signals.start_up_is_over();
    EXPECT_EQ(signals.received(), 0);
    // This thread and threads that it starts later compute, so signals must not interrupt them.
    EXPECT_FALSE(takes_stop_signals());
    bool taken = true;
    std::thread([&] { taken = takes_stop_signals(); }).join();
    EXPECT_FALSE(taken);
    EXPECT_TRUE(received(SIGUSR1));
    EXPECT_TRUE(received(SIGTERM));
    EXPECT_TRUE(received(SIGUSR1)) << "more than once";
    EXPECT_THROW(StopSignals(), std::logic_error);
    EXPECT_FALSE(takes_stop_signals()) << "the failed second one changed nothing";
  }
  ::kill(::getpid(), SIGTERM);
  return !testing::Test::HasFailure();
}

// Gets a signal, and then does not look for signals for 20 seconds, like a long part of the
// start-up. The process must still end soon.
void be_stopped_in_a_long_start_up() {
  const StopSignals signals;
  ::kill(::getpid(), SIGTERM);
  std::this_thread::sleep_for(std::chrono::seconds(20));
}

TEST(StopSignals, ALongStartUpEndsSoonAfterASignal) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EXIT(be_stopped_in_a_long_start_up(), testing::ExitedWithCode(75),
              "stopped by a signal before the first step");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// StopSignals handles signals until the process ends. So this test has a process of its own.
TEST(StopSignals, SetTheFlagAndNeverEndTheProcess) {
  EXPECT_EXIT(std::exit(come_to_an_end_after_signals() ? 75 : 1), testing::ExitedWithCode(75), "");
}

}  // namespace
}  // namespace convoy::app
