// Whole training jobs under mpirun: what must hold whatever the number of ranks, and what a user sees when a job goes
// wrong. The data are drawn by `convoy data synth`.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Outcome {
  int status = -1;
  std::string text;
  std::vector<std::string> ours() const {  // the lines of errors that Convoy itself wrote
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
  Outcome outcome;
  std::FILE* pipe = ::popen(("timeout 200 " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.text += buffer.data();
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return outcome;
}

class TrainJob : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder() = fs::temp_directory_path() / ("convoy-train-job-" + std::to_string(::getpid()));
    fs::create_directories(folder());
    const Outcome drawn = run(std::string(CONVOY_PROGRAM) + " data synth " + data() +
                              " --classes 10 --size 32 --train 600 --test 90 --seed 3");
    ASSERT_EQ(drawn.status, 0) << drawn.text;
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }

  static fs::path& folder() {
    static fs::path path;
    return path;
  }
  static std::string data() { return (folder() / "synth.h5").string(); }
  static std::string out(const std::string& name) { return (folder() / name).string(); }

  static std::string command(int ranks, const std::string& verb_and_flags) {
    return std::string(CONVOY_MPIEXEC) + " -np " + std::to_string(ranks) +
           " --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 " + CONVOY_PROGRAM + " " +
           verb_and_flags;
  }
  // A small network with batch norm, a batch that neither 2 nor 4 ranks divide, and a short last one (600 = 11 * 51 + 39).
  static std::string train(const std::string& name, const std::string& flags,
                           const std::string& model = "wrn10_1") {
    return "train --model " + model + " --data " + data() +
           " --global-batch 51 --seed 1 "
           "--threads 1 --log-every 1 --out " +
           out(name) + " " + flags;
  }
  static json summary(const std::string& name) {
    return json::parse(std::ifstream(fs::path(out(name)) / "summary.json"));
  }
  static std::string sha(const std::string& name) { return summary(name)["parameters_sha256"]; }
  static std::vector<json> lines(const std::string& name) {
    std::vector<json> all;
    std::ifstream file(fs::path(out(name)) / "metrics.jsonl");
    for (std::string line; std::getline(file, line);)
      if (json object = json::parse(line, nullptr, false); !object.is_discarded())
        all.push_back(std::move(object));
    return all;
  }
  static std::vector<double> losses(const std::string& name) {
    std::vector<double> values;
    for (const json& line : lines(name))
      if (line.contains("loss")) values.push_back(line["loss"]);
    return values;
  }

  // Starts a job and waits until it has logged `step` steps.
  static pid_t start_until(const std::string& job, const std::string& name, std::size_t step) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setpgid(0, 0);
      ::signal(SIGINT, SIG_DFL);  // ignored where the tests run in the background
      const std::string line = "exec " + job + " > " + out(name + ".log") + " 2>&1";
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (losses(name).size() < step && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return pid;
  }
  static int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static std::string log(const std::string& name) {
    std::ifstream file(out(name + ".log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The processes of the program whose command line names this job's folder.
  static std::vector<pid_t> ranks_of(const std::string& name) {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string id = entry.path().filename();
      if (id.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string line{std::istreambuf_iterator<char>(file), {}};
      if (line.starts_with(CONVOY_PROGRAM) && line.find(out(name)) != std::string::npos)
        found.push_back(std::stoi(id));
    }
    return found;
  }
};

TEST_F(TrainJob, LossesDoNotDependOnTheNumberOfRanks) {
  for (const int ranks : {1, 2, 4}) {
    const std::string name = "ranks" + std::to_string(ranks);
    const Outcome job = run(command(ranks, train(name,
                                                 "--learning-rate 0.002 --momentum 0 --steps 100 --flip "
                                                 "--crop-padding 4 --checkpoint-every-epochs 0")));
    ASSERT_EQ(job.status, 0) << job.text;
    ASSERT_EQ(losses(name).size(), 100u);
  }
  const auto one = losses("ranks1");
  for (const char* name : {"ranks2", "ranks4"}) {
    const auto several = losses(name);
    for (std::size_t step = 0; step < one.size(); ++step)
      EXPECT_LE(std::abs(several[step] - one[step]), 1e-4 * std::abs(one[step])) << name << ", step " << step;
  }
}

TEST_F(TrainJob, SameBitsTwiceAndForBothWaysOfFeeding) {
  for (const char* flags : {"first --feed slice", "again --feed slice", "scattered --feed scatter"}) {
    const std::string text(flags), name = text.substr(0, text.find(' '));
    const Outcome job = run(command(3, train(name, "--steps 15 --flip " + text.substr(text.find(' ')))));
    ASSERT_EQ(job.status, 0) << job.text;
  }
  EXPECT_EQ(sha("first"), sha("again"));
  EXPECT_EQ(sha("first"), sha("scattered"));
  EXPECT_EQ(losses("first"), losses("scattered"));
}

TEST_F(TrainJob, AKilledRankEndsTheJobAndResumingGivesTheSameParameters) {
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

// Whether a process has got as far as to handle a signal.
bool catches(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

TEST_F(TrainJob, ASignalCheckpointsAndEndsWithSeventyFive) {
  const std::string flags = "--steps 60 --checkpoint-every-epochs 0 --momentum 0.9";
  const Outcome whole = run(command(2, train("unstopped", flags)));
  ASSERT_EQ(whole.status, 0) << whole.text;
  // To every rank, as Slurm does it; to the launcher, which passes it on; to one rank; and before the first step.
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
    const Outcome resumed = run(command(2, train(name, flags + " --resume")));
    ASSERT_EQ(resumed.status, 0) << resumed.text;
    EXPECT_EQ(sha(name), sha("unstopped")) << way;
  }
}

// The products of lenet's large layers are where a handler on the thread that computes would write into the heap, on
// processors for which oneDNN takes its AVX2 kernels.
TEST_F(TrainJob, ManySignalsSpoilNothing) {
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

// Somebody at a terminal: the first ^C makes a checkpoint, a second one ends the run in the middle of its step.
TEST_F(TrainJob, AnInterruptCheckpointsAndASecondOneKills) {
  const std::string program = std::string(CONVOY_PROGRAM) + " ",
                    flags = "--steps 60 --checkpoint-every-epochs 0";
  const Outcome whole = run(program + train("uninterrupted", flags));
  ASSERT_EQ(whole.status, 0) << whole.text;
  const pid_t job = start_until(program + train("interrupted", flags), "interrupted", 10);
  for (int times = 0; times < 2; ++times) ::kill(job, SIGINT);  // as timeout(1) does it
  EXPECT_EQ(wait_for(job), 75) << log("interrupted");
  const Outcome resumed = run(program + train("interrupted", flags + " --resume"));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(sha("interrupted"), sha("uninterrupted"));

  const pid_t impatient = start_until(program + train("impatient", flags, "wrn16_4"), "impatient", 1);
  ::kill(impatient, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // of a step of two seconds
  ::kill(impatient, SIGINT);
  EXPECT_EQ(wait_for(impatient), -SIGINT) << log("impatient");
}

TEST_F(TrainJob, ResumingKnowsWhatItGoesOnFrom) {
  const std::string flags = "--steps 24 --checkpoint-every-epochs 0 --eval-every 1";
  ASSERT_EQ(run(command(1, train("done", flags))).status, 0);
  const std::string results = summary("done").dump();
  // Nothing left to do: a requeued job must not replace the results by those of no step.
  const Outcome again = run(command(1, train("done", flags + " --resume")));
  EXPECT_EQ(again.status, 0) << again.text;
  EXPECT_EQ(summary("done").dump(), results);
  fs::remove(fs::path(out("done")) / "summary.json");
  EXPECT_EQ(run(command(1, train("done", flags + " --resume"))).status, 0);
  EXPECT_EQ(summary("done")["parameters_sha256"], json::parse(results)["parameters_sha256"]);
  EXPECT_EQ(summary("done")["test_accuracy"], json::parse(results)["test_accuracy"]);

  const Outcome shorter = run(command(1, train("done", "--steps 20 --resume")));
  EXPECT_EQ(shorter.status, 2) << shorter.text;
  const Outcome fewer = run(command(1, train("done", "--steps 30 --limit-test 10 --resume")));
  EXPECT_EQ(fewer.status, 0) << fewer.text;
  const Outcome drawn = run(std::string(CONVOY_PROGRAM) + " data synth " + out("others.h5") +
                            " --classes 10 --size 32 --train 600 --test 90 --seed 4");
  ASSERT_EQ(drawn.status, 0) << drawn.text;
  std::string on_others = train("done", "--steps 40 --resume");
  on_others.replace(on_others.find(data()), data().size(), out("others.h5"));
  const Outcome others = run(command(2, on_others));
  EXPECT_EQ(others.status, 1) << others.text;
  EXPECT_NE(others.text.find("others.h5: not the images"), std::string::npos) << others.text;

  // A new run in the same folder puts the old checkpoints aside.
  ASSERT_EQ(run(command(1, train("done", "--steps 1"))).status, 0);
  EXPECT_TRUE(fs::exists(fs::path(out("done")) / "checkpoint-1" / "step-00000030.h5"));
  EXPECT_FALSE(fs::exists(fs::path(out("done")) / "checkpoint" / "step-00000030.h5"));
}

TEST_F(TrainJob, ASecondRunInTheSameFolderIsRefused) {
  const std::string flags = "--steps 400 --checkpoint-every-steps 5";
  const pid_t first = start_until(command(2, train("shared", flags)), "shared", 6);
  for (const char* more : {"", " --resume"}) {
    const Outcome second = run(command(2, train("shared", flags + more)));
    EXPECT_EQ(second.status, 1) << second.text;
    ASSERT_EQ(second.ours().size(), 1u) << second.text;
    EXPECT_NE(second.ours()[0].find(out("shared") + ": found another run at work there"), std::string::npos);
  }
  ASSERT_EQ(::waitpid(first, nullptr, WNOHANG), 0) << "the first goes on: " << log("shared");
  const std::size_t steps = losses("shared").size();
  for (const pid_t rank : ranks_of("shared")) ::kill(rank, SIGKILL);
  EXPECT_NE(wait_for(first), 0);
  EXPECT_GE(losses("shared").size(), steps) << "its metrics are not cut";
  EXPECT_FALSE(fs::exists(out("shared/checkpoint-1"))) << "its checkpoints are not put aside";
  const Outcome resumed = run(command(2, train("shared", "--steps 8 --resume --global-batch 52")));
  EXPECT_EQ(resumed.status, 2) << "not refused for the dead run: " << resumed.text;
}

TEST_F(TrainJob, TheBestIsKeptWhenNoCheckpointIsDue) {
  ASSERT_EQ(
      run(command(1, train("best", "--epochs 3 --checkpoint-every-epochs 0 --learning-rate 0.05"))).status,
      0);
  double best = 0;
  for (const json& line : lines("best"))
    if (line.contains("test_top1")) best = std::max(best, line["test_top1"].get<double>());
  for (const char* folder : {"best/checkpoint", "best"}) {
    const Outcome test = run(command(1, "evaluate --json --data " + data() + " --checkpoint " + out(folder)));
    ASSERT_EQ(test.status, 0) << test.text;
    EXPECT_DOUBLE_EQ(json::parse(test.text)["test_accuracy"].get<double>(), best);
  }
}

TEST_F(TrainJob, ADamagedCheckpointIsReportedOnceAndPassedOver) {
  ASSERT_EQ(run(command(2, train("damaged", "--steps 4 --checkpoint-every-steps 2"))).status, 0);
  const std::string before = sha("damaged");
  std::ofstream(fs::path(out("damaged")) / "checkpoint" / "step-00000004.h5") << "cut short";
  const Outcome job = run(command(2, train("damaged", "--steps 4 --checkpoint-every-steps 2 --resume")));
  EXPECT_EQ(job.status, 0) << job.text;
  const std::string warning = "going back to the checkpoint before";
  const auto first = job.text.find(warning);
  ASSERT_NE(first, std::string::npos) << job.text;
  EXPECT_EQ(job.text.find(warning, first + 1), std::string::npos) << job.text;
  EXPECT_EQ(sha("damaged"), before);
}

// One rank's mistake among several must come out at once, whatever collective the others are in.
TEST_F(TrainJob, OneRanksMistakeIsSaidAtOnce) {
  const std::string wrapper = out("wrapper.sh");
  std::ofstream(wrapper) << "#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || set -- \"$@\" --memory-limit "
                            "1MiB\nexec " CONVOY_PROGRAM " \"$@\"\n";
  fs::permissions(wrapper, fs::perms::owner_all);
  const Outcome job = run(std::string(CONVOY_MPIEXEC) + " -np 3 --oversubscribe --bind-to none " + wrapper +
                          " " + train("mistaken", "--steps 3 --timeout 20"));
  EXPECT_EQ(job.status, 1) << job.text;
  ASSERT_EQ(job.ours().size(), 1u) << job.text;
  EXPECT_NE(job.ours()[0].find("--memory-limit"), std::string::npos) << job.text;
}

// Verbs that need no other rank run in every process, which then all find the same.
TEST_F(TrainJob, ProcessesWithoutMpiSayOnceWhatTheyAllFind) {
  for (const auto& [verb, status, part] :
       {std::tuple{"bench loader --data none.h5", 1, "none.h5"}, {"info --model resnet19", 2, "resnet19"}}) {
    const Outcome job = run(command(2, verb));
    EXPECT_EQ(job.status, status) << job.text;
    ASSERT_EQ(job.ours().size(), 1u) << job.text;
    EXPECT_NE(job.ours()[0].find(part), std::string::npos) << job.text;
  }
}

TEST_F(TrainJob, AFileSizeLimitIsAnErrorLikeAFullDisk) {
  // 20 MiB: room for what MPI itself writes, not for resnet18 and its momenta.
  const Outcome job =
      run("sh -c 'ulimit -f 40960; exec " +
          command(1, "train --model resnet18_cifar --global-batch 4 --steps 2 --limit-test 4 --data " +
                         data() + " --out " + out("limited")) +
          "'");
  EXPECT_EQ(job.status, 1) << job.text;
  ASSERT_EQ(job.ours().size(), 1u) << job.text;
  EXPECT_NE(job.ours()[0].find("step-00000002.h5"), std::string::npos) << job.text;
  for (const auto& entry : fs::directory_iterator(out("limited/checkpoint"))) ADD_FAILURE() << entry.path();
}

TEST_F(TrainJob, EvaluateRepeatsTheLastTest) {
  const Outcome job = run(command(2, train("tested", "--epochs 1")));
  ASSERT_EQ(job.status, 0) << job.text;
  // On the CPU the arena is a part of what the process takes; all of it is touched but what alignment leaves.
  const auto arena = summary("tested")["peak_device_bytes"].get<double>();
  EXPECT_GT(arena, 0);
  EXPECT_GT(summary("tested")["peak_host_bytes"].get<double>(), 0.9 * arena);
  EXPECT_LT(summary("tested")["peak_host_bytes"].get<double>(), arena + (512 << 20));
  const fs::path checkpoint = fs::path(out("tested")) / "checkpoint" / "best.h5";
  for (const int ranks : {1, 2}) {
    const Outcome test = run(command(
        ranks, "evaluate --json --threads 1 --data " + data() + " --checkpoint " + checkpoint.string()));
    ASSERT_EQ(test.status, 0) << test.text;
    EXPECT_DOUBLE_EQ(json::parse(test.text)["test_accuracy"].get<double>(),
                     summary("tested")["test_accuracy"].get<double>());
    EXPECT_EQ(json::parse(test.text)["images"].dump(), "90");
  }
}

TEST_F(TrainJob, BadInputIsOneLineThatNamesIt) {
  const std::string wrong_model = "--model resnet19 --out " + out("bad");
  const std::string tail = " --global-batch 8 --steps 1 --threads 1 --data " + data();
  const auto expect = [](const Outcome& outcome, int status, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.status, status) << outcome.text;
    ASSERT_EQ(outcome.ours().size(), 1u) << outcome.text;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.ours()[0].find(part), std::string::npos) << outcome.text;
  };
  expect(run(command(2, "train " + wrong_model + tail)), 2, {"resnet19", "resnet18"});
  expect(run(command(2, "train --model lenet --batch-size 3 --out " + out("bad") + tail)), 2,
         {"--batch-size"});
  expect(run(command(
             3, "train --model lenet --out " + out("bad") + " --global-batch 2 --steps 1 --data " + data())),
         2, {"--global-batch", "2", "3"});
  expect(run(command(2, "train --model lenet --out /proc/no/such" + tail)), 1, {"/proc/no/such"});
  expect(run(command(2, "train --model lenet --out " + out("bad") + " --global-batch 8 --steps 1 --data " +
                            out("none.h5"))),
         1, {"none.h5"});
  expect(run(command(2, "train --model lenet --memory-limit 1MiB --out " + out("bad") + tail)), 1,
         {"--memory-limit"});
  expect(run(command(2, "train --model lenet --size 48 --crop-padding 2 --out " + out("bad") + tail)), 1,
         {"--size", "48", "--crop-padding", "32x32"});
  expect(run(command(2, "train --model lenet --size 28 --cutout 29 --out " + out("bad") + tail)), 1,
         {"--cutout", "29", "28x28"});
  expect(run(command(2, "train --model alexnet --out " + out("bad") + tail)), 1, {"alexnet"});

  ASSERT_EQ(run(command(1, "train --model lenet --out " + out("other") + tail)).status, 0);
  expect(run(command(2, "train --model mlp --resume --out " + out("other") + tail)), 2, {"model", "lenet"});
  const Outcome drawn = run(std::string(CONVOY_PROGRAM) + " data synth " + out("four.h5") +
                            " --classes 4 --size 32 --train 40 --test 8 --seed 3");
  ASSERT_EQ(drawn.status, 0) << drawn.text;
  expect(run(command(
             1, "evaluate --data " + out("four.h5") + " --checkpoint " + out("other/checkpoint/best.h5"))),
         1, {"classes"});
}

TEST_F(TrainJob, ABatchLargerThanTheSetIsSaid) {
  const std::string flags =
      "train --model lenet --limit-train 30 --limit-test 8 --epochs 2 --threads 1 --data " + data();
  const Outcome exact = run(command(2, flags + " --global-batch 30 --out " + out("exact")));
  EXPECT_EQ(exact.status, 0) << exact.text;
  EXPECT_TRUE(exact.ours().empty()) << exact.text;
  const Outcome larger = run(command(2, flags + " --global-batch 31 --out " + out("larger")));
  EXPECT_EQ(larger.status, 0) << larger.text;
  ASSERT_EQ(larger.ours().size(), 1u) << larger.text;
  EXPECT_EQ(larger.ours()[0],
            "convoy: warning: --global-batch: found 31, but there are 30 training images; a step sees each "
            "of them once");
  // To rounding: a rank's batch has room for 16 images now, and kernels of another size may add in another order.
  EXPECT_NEAR(summary("larger")["train_loss"].get<double>(), summary("exact")["train_loss"].get<double>(),
              1e-6);
}

TEST_F(TrainJob, DivergenceStopsWithAMessage) {
  const Outcome job = run(command(2, train("diverged", "--steps 50 --optimizer sgd --learning-rate 1e30")));
  EXPECT_EQ(job.status, 1) << job.text;
  ASSERT_EQ(job.ours().size(), 1u) << job.text;
  EXPECT_NE(job.ours()[0].find("loss"), std::string::npos) << job.text;
}

// Real images; the bound is far above what an untrained (10 %) or a mis-wired network reaches.
TEST_F(TrainJob, LearnsOnCifar10) {
  const fs::path archive = fs::path(CONVOY_SHARED_DATA) / "cifar10-images.tar.xz";
  if (!fs::exists(archive)) GTEST_SKIP() << archive << " is not there";
  const Outcome converted =
      run(std::string(CONVOY_PROGRAM) + " data convert " + archive.string() + " " + out("cifar.h5"));
  ASSERT_EQ(converted.status, 0) << converted.text;
  const Outcome job =
      run(command(1, "train --model cifar10_quick --data " + out("cifar.h5") + " --out " + out("cifar") +
                         " --limit-train 10000 --limit-test 2000 --epochs 4 --global-batch 50 "
                         "--schedule one-cycle --learning-rate 0.05 --weight-decay 5e-4 --flip --seed 1"));
  ASSERT_EQ(job.status, 0) << job.text;
  EXPECT_GE(summary("cifar")["test_accuracy"].get<double>(), 0.45) << job.text;
}

}  // namespace
