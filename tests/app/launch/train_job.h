// Starts training jobs as separate processes, with or without mpirun. `convoy data synth` makes
// their data once per test program.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/shell.h"

namespace convoy::test {

namespace fs = std::filesystem;
using nlohmann::json;

class TrainJob : public testing::Test {
 protected:
  static Outcome run(const std::string& command) { return test::run(command, 200); }
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
  // Returns the arguments that train a small network with batch norm. Neither 2 nor 4 ranks divide
  // its batch of 51 images evenly, and the last batch of an epoch has 39 images.
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

  static pid_t start_until(const std::string& job, const std::string& name, std::size_t step) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setpgid(0, 0);
      ::signal(SIGINT, SIG_DFL);  // SIGINT is ignored if the tests run in the background
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
  // Returns the processes of the run with this name: those whose command line contains its output
  // path.
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

}  // namespace convoy::test
