// Tests training jobs that are killed, told to stop or interrupted, and then resumed from their
// checkpoint.
#include <algorithm>

#include "tests/app/launch/train_job.h"

namespace convoy::test {
namespace {

class TrainSignals : public TrainJob {};

TEST_F(TrainSignals, AKilledRankEndsTheJobAndResumingGivesTheSameParameters) {
  const std::string flags = "--steps 60 --checkpoint-every-steps 7 --momentum 0.9 --flip";
  const Outcome whole = run(command(2, train("whole", flags)));
  ASSERT_EQ(whole.status, 0) << whole.text;

  const pid_t job = start_until(command(2, train("killed", flags)), "killed", 20);
  const auto ranks = ranks_of("killed");
  ASSERT_EQ(ranks.size(), 2u);
  const auto killed_at = std::chrono::steady_clock::now();
  ::kill(ranks[1], SIGKILL);
  EXPECT_NE(wait_for(job), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - killed_at, std::chrono::seconds(15));
  EXPECT_NE(log("killed").find("convoy: rank 1 "), std::string::npos) << log("killed");
  EXPECT_LT(losses("killed").size(), 60u);

  const Outcome resumed = run(command(2, train("killed", flags + " --resume")));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_NE(resumed.text.find("resumed"), std::string::npos) << resumed.text;
  EXPECT_EQ(sha("killed"), sha("whole"));
  EXPECT_EQ(losses("killed"), losses("whole"));
}

// Returns whether a process has already installed its handler for a signal.
bool catches(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

// The signals come while the system still loads the program. `env` blocks them, as docs/running.md
// advises, so they must wait and then end the run with exit status 75.
TEST_F(TrainSignals, SignalsThatEnvHeldBackEndWithSeventyFive) {
  if (run("env --block-signal=TERM true").status != 0) GTEST_SKIP() << "env cannot block signals";
  const std::string blocked = "env --block-signal=TERM --block-signal=USR1 ";
  for (const int signal : {SIGTERM, SIGUSR1}) {
    for (const std::size_t ranks : {1u, 2u}) {
      const std::string name = "held-" + std::to_string(signal) + "-" + std::to_string(ranks);
      std::string line = command(2, train(name, "--steps 60"));
      if (ranks == 1) line = std::string(CONVOY_PROGRAM) + " " + train(name, "--steps 60");
      const pid_t job = start_until(line.insert(line.find(CONVOY_PROGRAM), blocked), name, 0);
      std::vector<pid_t> started;
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (started.size() < ranks && std::chrono::steady_clock::now() < limit)
        for (const pid_t rank : ranks_of(name)) {
          if (std::ranges::find(started, rank) != started.end()) continue;
          ::kill(rank, signal);
          started.push_back(rank);
        }
      EXPECT_EQ(wait_for(job), 75) << log(name);
      EXPECT_NE(log(name).find("stopped by a signal before the first step"), std::string::npos) << log(name);
    }
  }
}

TEST_F(TrainSignals, ASignalCheckpointsAndEndsWithSeventyFive) {
  const std::string flags = "--steps 60 --checkpoint-every-epochs 0 --momentum 0.9";
  const Outcome whole = run(command(2, train("unstopped", flags)));
  ASSERT_EQ(whole.status, 0) << whole.text;
  // The signal goes to every rank, as from Slurm; only to mpirun, which passes it on; only to one
  // rank; or to every rank before the first step.
  for (const std::string_view way : {"ranks", "mpirun", "one", "early"}) {
    const std::string name = "stopped-" + std::string(way);
    const pid_t job = start_until(command(2, train(name, flags)), name, way == "early" ? 0 : 10);
    const auto handles = [](pid_t rank) { return catches(rank, SIGUSR1); };
    while (way == "early" && std::ranges::count_if(ranks_of(name), handles) < 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (way == "mpirun") ::kill(job, SIGUSR1);
    if (way == "one") ::kill(ranks_of(name).at(1), SIGTERM);
    if (way == "ranks" || way == "early")
      for (const pid_t rank : ranks_of(name)) ::kill(rank, SIGUSR1);
    EXPECT_EQ(wait_for(job), 75) << log(name);
    if (way == "early") {
      EXPECT_TRUE(losses(name).empty()) << "stopped before the first step";
      EXPECT_FALSE(fs::exists(fs::path(out(name)) / "checkpoint" / "best.h5"));
      EXPECT_NE(log(name).find("convoy: stopped by a signal before the first step"), std::string::npos)
          << log(name);
    }
    const Outcome resumed = run(command(2, train(name, flags + " --resume")));
    ASSERT_EQ(resumed.status, 0) << resumed.text;
    EXPECT_EQ(sha(name), sha("unstopped")) << way;
  }
}

// Signals must not interrupt the thread that computes. In oneDNN's AVX2 kernels for lenet's large
// layers, a signal handler would overwrite data on the heap.
TEST_F(TrainSignals, ManySignalsSpoilNothing) {
  const std::string flags = "--steps 12 --checkpoint-every-epochs 0 --momentum 0.9";
  const Outcome whole = run(command(1, train("calm", flags, "lenet")));
  ASSERT_EQ(whole.status, 0) << whole.text;
  const pid_t job = start_until(command(1, train("stormy", flags, "lenet")), "stormy", 3);
  const auto ranks = ranks_of("stormy");
  ASSERT_EQ(ranks.size(), 1u);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (::kill(ranks[0], SIGTERM) == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  EXPECT_EQ(wait_for(job), 75) << log("stormy");
  const Outcome resumed = run(command(1, train("stormy", flags + " --resume", "lenet")));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(sha("stormy"), sha("calm"));
}

// The first ^C (SIGINT) must save a checkpoint and stop the run. The second must end the run at
// once, in the middle of its step.
TEST_F(TrainSignals, AnInterruptCheckpointsAndASecondOneKills) {
  const std::string program = std::string(CONVOY_PROGRAM) + " ",
                    flags = "--steps 60 --checkpoint-every-epochs 0";
  const Outcome whole = run(program + train("uninterrupted", flags));
  ASSERT_EQ(whole.status, 0) << whole.text;
  const pid_t job = start_until(program + train("interrupted", flags), "interrupted", 10);
  // timeout(1) sends a signal twice within a moment. Both together must count as one ^C.
  for (int times = 0; times < 2; ++times) ::kill(job, SIGINT);
  EXPECT_EQ(wait_for(job), 75) << log("interrupted");
  const Outcome resumed = run(program + train("interrupted", flags + " --resume"));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(sha("interrupted"), sha("uninterrupted"));

  const pid_t impatient = start_until(program + train("impatient", flags, "wrn16_4"), "impatient", 1);
  ::kill(impatient, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // a step takes two seconds
  ::kill(impatient, SIGINT);
  EXPECT_EQ(wait_for(impatient), -SIGINT) << log("impatient");
}

}  // namespace
}  // namespace convoy::test
