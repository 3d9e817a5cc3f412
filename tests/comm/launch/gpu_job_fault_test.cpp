// Checks the messages of a job on two GPUs that meets a fault, and how soon it ends.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/comm/launch/job.h"

namespace {

using namespace convoy::test;

class GpuJob : public testing::Test {
 protected:
  void SetUp() override {
    int found = 0;
    if (cudaGetDeviceCount(&found) != cudaSuccess) found = 0;
    if (found < 2) GTEST_SKIP() << "needs two GPUs, found " << found;
  }
};

Outcome launch(const std::string& scenario, int timeout_ms, const std::string& flags = "") {
  return run(std::string(CONVOY_MPIEXEC) + " -np 2 --oversubscribe --bind-to none " + flags + " " +
             CONVOY_VICTIM + " " + scenario + " " + std::to_string(timeout_ms));
}

TEST_F(GpuJob, FinishesWithoutAFault) {
  const Outcome outcome = launch("none", 60'000);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text, "finished on 2 ranks\n");
}

TEST_F(GpuJob, NamesARankKilledInTheMiddleOfAnAllReduce) {
  for (const auto& [scenario, victim] : {std::pair{"kill", "rank 1 "}, std::pair{"kill0", "rank 0 "}}) {
    const Outcome outcome = launch(scenario, 300'000);
    EXPECT_NE(outcome.status, 0);
    expect_one_line(outcome, {victim, "cuda:", "died (killed or crashed) during all_reduce gradients bucket",
                              "(step 30); ending the job"});
    EXPECT_LT(outcome.seconds, 20) << outcome.text;
  }
}

TEST_F(GpuJob, NamesARankWhoseDeviceStalls) {
  for (const auto& [scenario, victim] : {std::pair{"stall", "rank 1 "}, std::pair{"stall0", "rank 0 "}}) {
    const Outcome outcome = launch(scenario, 2000);
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    expect_one_line(
        outcome, {"all_reduce gradients bucket", "(step 30): no answer from ", victim,
                  "cuda:", "within 2 s: it is in no collective, its last was all_reduce gradients bucket"});
    EXPECT_LT(outcome.seconds, 20);
  }
}

TEST_F(GpuJob, NamesARankThatNeverLaunchesItsStep) {
  const Outcome outcome = launch("absent", 2000);
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  expect_one_line(outcome, {"all_reduce gradients bucket 0 (step 30): no answer from rank 1 ",
                            "within 2 s: it is in no collective, its last was all_reduce "});
  EXPECT_LT(outcome.seconds, 20);
}

// Rank 1 never prepares its transfers, so rank 0 waits in its first transfer. If copy engines move
// the data, it waits until rank 1 says where in its memory the data go. If NCCL moves the data, it
// waits for a connection.
TEST_F(GpuJob, NamesARankThatNeverPreparesItsTransfers) {
  for (const std::string& flags : {std::string(), std::string("-x NCCL_P2P_DISABLE=1")}) {
    const Outcome outcome = launch("unprepared", 2000, flags);
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    expect_one_line(outcome, {": no answer from rank 1 ", "within 2 s: it is in no collective"});
    const bool copied = contains(outcome.text, "address of a transfer: no answer");
    const bool connected = contains(outcome.text, "NCCL connection from rank 0 to rank 1: no answer");
    EXPECT_TRUE(connected || (copied && flags.empty())) << outcome.text;
    EXPECT_LT(outcome.seconds, 20);
  }
}

TEST_F(GpuJob, NamesAStoppedRank) {
  const Outcome outcome = launch("stop", 2000);
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  expect_one_line(outcome, {"(step 30): no answer from rank 1 ", "it does not respond at all"});
  EXPECT_LT(outcome.seconds, 20);
}

// Rank 1 throws while its device is in an all-reduce that never ends. Freeing the device's memory
// must not wait for the all-reduce.
TEST_F(GpuJob, EndsOnAnErrorOfARankWhoseDeviceWaits) {
  const Outcome outcome = launch("throw", 300'000);
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  expect_one_line(outcome, {"rank 1 (host ", "cuda:", "data.h5: cannot read chunk 7"});
  EXPECT_LT(outcome.seconds, 20);
}

TEST_F(GpuJob, IsRefusedWhenTwoRanksShareAGpu) {
  const Outcome outcome = launch("none", 60'000, "-x CUDA_VISIBLE_DEVICES=0");
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "ranks 0 and 1 are on one GPU of host ")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "expected one rank per GPU")) << outcome.text;
  EXPECT_LT(outcome.seconds, 20);
}

}  // namespace
