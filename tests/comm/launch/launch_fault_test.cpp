// Faults of whole jobs under mpirun: what the user sees and how soon. The finer cases, and each rank's own
// exit status, are in watchdog_test.cpp.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Outcome {
  int status = -1;
  double seconds = 0;
  std::string text;
  // The lines that Convoy itself wrote; mpirun adds its own notice.
  std::vector<std::string> ours() const {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; (begin = text.find("convoy: ", begin)) != std::string::npos;) {
      const std::size_t end = text.find('\n', begin);
      lines.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    return lines;
  }
};

Outcome run(const std::string& command) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  std::FILE* pipe = ::popen(("timeout 60 " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.text += buffer.data();
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

Outcome launch(int ranks, const std::string& scenario, int timeout_ms) {
  return run(std::string(CONVOY_MPIEXEC) + " -np " + std::to_string(ranks) +
             " --oversubscribe --mca mpi_yield_when_idle 1 " + CONVOY_VICTIM + " " + scenario + " " +
             std::to_string(timeout_ms));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_one_line(const Outcome& outcome, const std::vector<std::string>& parts) {
  ASSERT_EQ(outcome.ours().size(), 1u) << outcome.text;
  for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.ours().front(), part)) << outcome.text;
  EXPECT_FALSE(contains(outcome.text, "MPI_ABORT")) << outcome.text;
  EXPECT_FALSE(contains(outcome.text, "finished on")) << outcome.text;
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
  for (const auto& [scenario, victim] : {std::pair{"error", "rank 2 "}, std::pair{"error0", "rank 0 "}}) {
    const Outcome outcome = launch(3, scenario, 300'000);
    EXPECT_EQ(outcome.status, 1);
    expect_one_line(outcome, {victim, "data.h5: cannot read chunk 7"});
  }
  for (const char* scenario : {"throw", "throw0"}) {
    const Outcome outcome = launch(3, scenario, 300'000);
    EXPECT_EQ(outcome.status, 1);
    expect_one_line(outcome, {"convoy: data.h5: cannot read chunk 7"});
  }
}

TEST(LaunchedJob, SaysOnceWhatAllRanksComplainOf) {
  const Outcome outcome = launch(4, "all_fail", 300'000);
  EXPECT_EQ(outcome.status, 2);
  expect_one_line(outcome, {"convoy: data.h5: no /train/images"});
}

TEST(LaunchedJob, ComplainsOnceOfAWrongCommandLine) {
  const Outcome outcome = launch(4, "usage", 1000);
  EXPECT_EQ(outcome.status, 2);
  expect_one_line(outcome, {"convoy: unknown flag --modle"});
}

TEST(LaunchedJob, StopsWhenEveryProcessBelievesItIsAlone) {
  // The environment that another launcher's processes would see.
  const Outcome outcome = run(std::string("env SLURM_STEP_NUM_TASKS=4 ") + CONVOY_VICTIM + " none 1000");
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  expect_one_line(outcome, {"the launcher started 4 processes (SLURM_STEP_NUM_TASKS=4) but MPI sees one"});
  const Outcome alone = run(std::string(CONVOY_VICTIM) + " none 1000");
  EXPECT_EQ(alone.status, 0) << alone.text;
  EXPECT_EQ(alone.text, "finished on 1 ranks\n");
}

}  // namespace
