// Tests whole training jobs with --partition, which divides a step into stages, one for each rank.
// The losses must be those of one rank, although the memory is too small for one rank.
// CONVOY_JOB_FLAGS may name the backend and the precision. A test is skipped if there are too few
// GPUs for it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/shell.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using test::Outcome;

class PartitionJob : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("convoy-partition-job-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string out(const std::string& name) const { return (folder_ / name).string(); }

  Outcome train(int ranks, const std::string& name, const std::string& flags) const {
    return test::run(std::string(CONVOY_MPIEXEC) + " -np " + std::to_string(ranks) +
                         " --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 " + CONVOY_PROGRAM +
                         " train --data synthetic --limit-train 64 --limit-test 16 --seed 3 --threads 1 "
                         "--log-every 1 --momentum 0.9 --weight-decay 1e-4 --learning-rate 0.01 --out " +
                         out(name) + " " + flags + " " + backend_flags(),
                     280);
  }
  static std::string backend_flags() {
    const char* flags = std::getenv("CONVOY_JOB_FLAGS");
    return flags == nullptr ? "" : flags;
  }
  static bool lacks_gpus(const Outcome& outcome) {
    return outcome.text.find("one rank per GPU") != std::string::npos ||
           outcome.text.find("sees no CUDA device") != std::string::npos;
  }
  json summary(const std::string& name) const {
    return json::parse(std::ifstream(fs::path(out(name)) / "summary.json"));
  }
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> values;
    std::ifstream file(fs::path(out(name)) / "metrics.jsonl");
    for (std::string line; std::getline(file, line);)
      if (const json object = json::parse(line, nullptr, false); object.contains("loss"))
        values.push_back(object["loss"]);
    return values;
  }

  // Trains on one rank without a memory limit, and then on `ranks` ranks, each of which may use
  // `share` (0 to 1) of the memory of the first run. Expects the same results.
  void expect_same_run(const std::string& model, int ranks, double share) const {
    const std::string common = "--model " + model + " --global-batch 8 --steps 3";
    const Outcome whole = train(1, "whole", common);
    if (lacks_gpus(whole)) GTEST_SKIP() << whole.text;
    ASSERT_EQ(whole.status, 0) << whole.text;
    const auto need = summary("whole")["peak_device_bytes"].get<double>();
    const auto limit = static_cast<long>(need * share);
    const std::string limited = common + " --memory-limit " + std::to_string(limit);
    const Outcome split = train(ranks, "split", limited + " --partition " + std::to_string(ranks));
    if (lacks_gpus(split)) GTEST_SKIP() << split.text;
    ASSERT_EQ(split.status, 0) << split.text;
    EXPECT_LE(summary("split")["peak_device_bytes"].get<long>(), limit);
    EXPECT_EQ(losses("split"), losses("whole"));
    EXPECT_EQ(summary("split")["parameters_sha256"], summary("whole")["parameters_sha256"]);
    EXPECT_EQ(summary("split")["test_accuracy"], summary("whole")["test_accuracy"]);
    EXPECT_GT(summary("split")["predicted_step_ms"].get<double>(), 0);
    EXPECT_NE(split.text.find("predicted"), std::string::npos);
  }

  fs::path folder_;
};

TEST_F(PartitionJob, ResNetOnTwoRanks) { expect_same_run("resnet18_cifar", 2, 0.7); }
TEST_F(PartitionJob, ResNetOnFourRanks) { expect_same_run("resnet18_cifar", 4, 0.55); }
// The step fits on one rank, so the planner may choose one rank or two. Both must give the same
// results.
TEST_F(PartitionJob, ResNetOnTwoRanksThatHoldIt) { expect_same_run("resnet18_cifar", 2, 1); }
TEST_F(PartitionJob, BranchesOnThreeRanks) { expect_same_run("googlenet", 3, 0.6); }

// Two replicas of the network, each in two stages, must give the bits of two replicas on one rank
// each. Sums over replicas have a fixed order.
TEST_F(PartitionJob, ReplicasOfPartsAreReplicas) {
  const std::string common = "--model wrn10_1 --global-batch 7 --steps 4";
  const Outcome replicas = train(2, "replicas", common);
  if (lacks_gpus(replicas)) GTEST_SKIP() << replicas.text;
  ASSERT_EQ(replicas.status, 0) << replicas.text;
  const auto limit = static_cast<long>(summary("replicas")["peak_device_bytes"].get<double>() * 0.75);
  const Outcome parts = train(4, "parts", common + " --partition 2 --memory-limit " + std::to_string(limit));
  if (lacks_gpus(parts)) GTEST_SKIP() << parts.text;
  ASSERT_EQ(parts.status, 0) << parts.text;
  EXPECT_EQ(losses("parts"), losses("replicas"));
  EXPECT_EQ(summary("parts")["parameters_sha256"], summary("replicas")["parameters_sha256"]);
}

// A checkpoint does not depend on the partition of its run. Trains the first half of a run in two
// stages and the rest on one rank, and then the reverse.
TEST_F(PartitionJob, ResumesAcrossPartitions) {
  const std::string common =
      "--model wrn10_1 --global-batch 8 --optimizer adamw --clip-gradient-norm 5 --checkpoint-every-steps 3 ";
  const Outcome whole = train(1, "whole", common + "--steps 6");
  if (lacks_gpus(whole)) GTEST_SKIP() << whole.text;
  ASSERT_EQ(whole.status, 0) << whole.text;
  const auto limit = static_cast<long>(summary("whole")["peak_device_bytes"].get<double>() * 0.75);
  const std::string in_parts = "--partition 2 --memory-limit " + std::to_string(limit);
  const Outcome first = train(2, "mixed", common + "--steps 3 " + in_parts);
  if (lacks_gpus(first)) GTEST_SKIP() << first.text;
  ASSERT_EQ(first.status, 0) << first.text;
  const Outcome second = train(1, "mixed", common + "--steps 6 --resume");
  ASSERT_EQ(second.status, 0) << second.text;
  ASSERT_EQ(train(1, "back", common + "--steps 3").status, 0);
  const Outcome back = train(2, "back", common + "--steps 6 --resume " + in_parts);
  ASSERT_EQ(back.status, 0) << back.text;
  const std::vector<double> expected = losses("whole");
  for (const char* name : {"mixed", "back"}) {
    const std::vector<double> found = losses(name);
    ASSERT_EQ(found.size(), expected.size());
    // The losses may differ in their last digits. With stages, the norm that clips the gradients is
    // summed in another order.
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-5 * std::abs(expected[i])) << name << ", step " << i;
  }
}

TEST_F(PartitionJob, WhatCannotFitIsRefusedInOneLine) {
  const Outcome outcome =
      train(2, "tiny", "--model wrn10_1 --global-batch 8 --steps 1 --partition 2 --memory-limit 200KiB");
  if (lacks_gpus(outcome)) GTEST_SKIP() << outcome.text;
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("convoy: --memory-limit 204800 bytes, --partition 2: "), std::string::npos)
      << outcome.text;
  const Outcome uneven = train(3, "uneven", "--model wrn10_1 --global-batch 8 --steps 1 --partition 2");
  if (lacks_gpus(uneven)) GTEST_SKIP() << uneven.text;
  EXPECT_EQ(uneven.status, 2) << uneven.text;
  EXPECT_NE(uneven.text.find("--partition: found 2, expected a divisor of the number of ranks, 3"),
            std::string::npos)
      << uneven.text;
}

}  // namespace
}  // namespace convoy
