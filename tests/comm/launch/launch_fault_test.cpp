// Checks the messages of a job under mpirun that meets a fault, and how soon it ends.
// watchdog_test.cpp tests more cases, and each rank's exit status.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tests/comm/launch/job.h"

namespace {

using namespace convoy::test;

Outcome launch(int ranks, const std::string& scenario, int timeout_ms) {
  return run(std::string(CONVOY_MPIEXEC) + " -np " + std::to_string(ranks) +
             " --oversubscribe --mca mpi_yield_when_idle 1 " + CONVOY_VICTIM + " " + scenario + " " +
             std::to_string(timeout_ms));
}

TEST(LaunchedJob, FinishesWithoutAFault) {
  const Outcome outcome = launch(3, "none", 60'000);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text, "finished on 3 ranks\n");
}

TEST(LaunchedJob, NamesARankThatNeverComes) {
  const Outcome outcome = launch(3, "absent", 1500);
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  expect_one_line(outcome, {"all_reduce gradients bucket 0 (step 3): no answer from rank 2 (host ",
                            "within 1.5 s: it is in no collective, its last was all_reduce loss (step 3)"});
  EXPECT_LT(outcome.seconds, 30);
}

TEST(LaunchedJob, NamesAStoppedRank) {
  for (const auto& [scenario, victim] : {std::pair{"stop", "rank 2 "}, std::pair{"stop0", "rank 0 "}}) {
    const Outcome outcome = launch(3, scenario, 1500);
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    expect_one_line(outcome, {"(step 3): no answer from ", victim, "it does not respond at all"});
    EXPECT_LT(outcome.seconds, 30);
  }
}

TEST(LaunchedJob, NamesAKilledRankLongBeforeTheTimeout) {
  for (const auto& [scenario, victim] : {std::pair{"kill", "rank 3 "}, std::pair{"kill0", "rank 0 "}}) {
    const Outcome outcome = launch(4, scenario, 300'000);
    EXPECT_NE(outcome.status, 0);
    EXPECT_NE(outcome.status, 75) << "taken for a request to checkpoint";
    expect_one_line(outcome, {victim, "died (killed or crashed)", "ending the job"});
    EXPECT_LT(outcome.seconds, 30);
  }
}

TEST(LaunchedJob, EndsOnAnErrorOfOneRank) {
  for (const char* scenario : {"throw", "throw0"}) {
    const Outcome outcome = launch(3, scenario, 300'000);
    EXPECT_EQ(outcome.status, 1);
    expect_one_line(outcome, {"convoy: data.h5: cannot read chunk 7"});
  }
}

TEST(LaunchedJob, ComplainsOnceOfAWrongCommandLine) {
  const Outcome outcome = launch(4, "usage", 1000);
  EXPECT_EQ(outcome.status, 2);
  expect_one_line(outcome, {"convoy: unknown flag --modle"});
}

TEST(LaunchedJob, StopsWhenEveryProcessBelievesItIsAlone) {
  // The job starts without mpirun, so MPI sees one process, but this variable says that a launcher
  // has started four.
  const Outcome outcome = run(std::string("env SLURM_STEP_NUM_TASKS=4 ") + CONVOY_VICTIM + " none 1000");
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  expect_one_line(outcome, {"the launcher started 4 processes (SLURM_STEP_NUM_TASKS=4) but MPI sees one"});
  const Outcome alone = run(std::string(CONVOY_VICTIM) + " none 1000");
  EXPECT_EQ(alone.status, 0) << alone.text;
  EXPECT_EQ(alone.text, "finished on 1 ranks\n");
}

}  // namespace
