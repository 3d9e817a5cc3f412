// Tests `convoy simulate --jobs`: its table, its JSON and its files. Wrong input must give a
// message of one line.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "app/commands/commands.h"

namespace convoy::app {
namespace {

class SimulateJobs : public testing::Test {
 protected:
  SimulateJobs() {
    std::filesystem::create_directories(folder_);
    write("four.json", R"({"clients": [{"name": "a", "copy_us": 62.5, "kernels": [500]},
      {"name": "b", "copy_us": 5, "kernels": [500]}, {"name": "c", "copy_us": 120, "kernels": [500]},
      {"name": "d", "copy_us": 187.5, "kernels": [500]}]})");
    write("limited.json", R"({"memory_bytes": 10, "clients": [
      {"name": "a", "copy_us": 2, "kernels": [4, 4], "idle_us": [20], "copy_back_us": 3, "bytes": 8},
      {"name": "b", "copy_us": 1, "kernels": [5], "bytes": 6}]})");
    std::string ten = R"({"clients": [)";
    for (int client = 0; client < 10; ++client)
      ten += (client > 0 ? ", " : "") + (R"({"name": ")" + std::to_string(client)) +
             R"(", "copy_us": 1, "kernels": [2]})";
    write("ten.json", ten + "]}");
  }
  ~SimulateJobs() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  struct Outcome {
    int status = 0;
    std::string out, error;
  };
  Outcome run(const std::string& file, const std::vector<std::string>& flags) const {
    std::vector<std::string> words = {"convoy", "simulate", "--jobs", path(file)};
    words.insert(words.end(), flags.begin(), flags.end());
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.status = run_command(static_cast<int>(arguments.size()), arguments.data());
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.error = testing::internal::GetCapturedStderr();
    return outcome;
  }
  std::vector<nlohmann::json> objects(const std::string& file, std::vector<std::string> flags = {}) const {
    flags.push_back("--json");
    const Outcome outcome = run(file, flags);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    std::vector<nlohmann::json> list;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) list.push_back(nlohmann::json::parse(line));
    return list;
  }
  void refuses(const std::string& file, const std::vector<std::string>& flags, int status,
               const std::string& line) const {
    const Outcome outcome = run(file, flags);
    EXPECT_EQ(outcome.status, status) << line;
    EXPECT_EQ(outcome.error, "convoy: " + line + "\n");
    EXPECT_EQ(outcome.out, "");
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("simulate_jobs-" + std::to_string(::getpid()));
};

TEST_F(SimulateJobs, PrintsAnObjectForEachPolicy) {
  const auto list = objects("four.json");
  ASSERT_EQ(list.size(), 6u);
  const std::vector<std::pair<std::string, double>> expected = {{"none", 2375},    {"fifo", 2062.5},
                                                                {"weight", 2005},  {"johnson", 2005},
                                                                {"genetic", 2005}, {"exact", 2005}};
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i]["policy"], expected[i].first);
    EXPECT_EQ(list[i]["makespan_us"], expected[i].second);
    EXPECT_EQ(list[i]["bound_us"], 2005);
    EXPECT_EQ(list[i]["idle_us"]["copy_in"], expected[i].second - 375);
    EXPECT_EQ(list[i]["idle_us"]["compute"], nlohmann::json::array({expected[i].second - 2000}));
    EXPECT_EQ(list[i]["idle_us"]["copy_back"], expected[i].second);
    EXPECT_EQ(list[i]["order"].size(), 4u);
    EXPECT_EQ(list[i]["optimal"], i > 1);
    EXPECT_EQ(list[i]["auto"], list[i]["policy"] == "johnson");
  }
  EXPECT_EQ(list[2]["order"], nlohmann::json({"b", "d", "a", "c"}));
}

TEST_F(SimulateJobs, EveryFlagReachesTheDevice) {
  const auto one = [&](const std::string& file, std::vector<std::string> flags) {
    const auto list = objects(file, std::move(flags));
    EXPECT_EQ(list.size(), 1u);
    return list.front();
  };
  const auto partial = one("limited.json", {"--policy", "fifo"});
  EXPECT_EQ(partial["makespan_us"], 33);
  EXPECT_EQ(partial["swapped_bytes"], 4);
  EXPECT_EQ(partial["peak_bytes"], 10);
  EXPECT_EQ(partial["auto"], false);
  EXPECT_EQ(one("limited.json", {"--policy", "fifo", "--eviction", "whole"})["swapped_bytes"], 8);
  EXPECT_EQ(one("limited.json", {"--policy", "fifo", "--eviction", "off"})["makespan_us"], 39);
  EXPECT_EQ(one("limited.json", {"--policy", "fifo", "--memory-limit", "14"})["swapped_bytes"], 0);
  EXPECT_EQ(one("four.json", {"--policy", "fifo", "--compute-engines", "2"})["idle_us"]["compute"].size(),
            2u);
  EXPECT_EQ(one("four.json", {"--policy", "weight", "--window", "1"})["order"],
            nlohmann::json({"a", "b", "c", "d"}));
  const auto chosen = one("four.json", {"--policy", "auto"});
  EXPECT_EQ(chosen["policy"], "johnson");
  EXPECT_EQ(chosen["auto"], true);
}

TEST_F(SimulateJobs, LeavesExactOutForManyJobs) {
  EXPECT_EQ(objects("ten.json").size(), 5u);
  const Outcome table = run("ten.json", {});
  EXPECT_NE(table.out.find("exact    left out: it searches up to 9 clients"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("auto takes fifo"), std::string::npos) << table.out;
  refuses("ten.json", {"--policy", "exact"}, 2,
          "--policy exact: " + path("ten.json") + " has 10 clients, expected at most 9");
}

TEST_F(SimulateJobs, WritesTheTimelineOfTheChosenPolicy) {
  ASSERT_EQ(run("limited.json", {"--report", path("r.html"), "--trace", path("t.json")}).status, 0);
  std::stringstream page;
  page << std::ifstream(path("r.html")).rdbuf();
  EXPECT_NE(page.str().find("limited.json by fifo"), std::string::npos);
  EXPECT_NE(page.str().find("<th>makespan<td class=\"n\">33.0 µs"), std::string::npos);
  EXPECT_NE(page.str().find("a: eviction"), std::string::npos);
  EXPECT_GT(nlohmann::json::parse(std::ifstream(path("t.json")))["traceEvents"].size(), 10u);
}

TEST_F(SimulateJobs, NamesTheFlagOrTheFile) {
  const std::string limited = path("limited.json");
  refuses("limited.json", {"--memory-limit", "7"}, 1,
          limited + ": client \"a\": bytes is 8, more than the memory of 7");
  refuses("four.json", {"--memory-limit", "7"}, 1,
          path("four.json") + ": no client has bytes, so a memory limit has no effect");
  refuses("limited.json", {"--policy", "fifo", "--seed", "2"}, 2,
          "--seed: belongs to --policy all or auto or genetic, found --policy fifo");
  refuses("limited.json", {"--policy", "johnson", "--time-limit", "2"}, 2,
          "--time-limit: belongs to --policy all or auto or genetic or exact, found --policy johnson");
  refuses("limited.json", {"--policy", "johnson", "--window", "2"}, 2,
          "--window: belongs to --policy all or auto or weight or genetic or exact, found --policy johnson");
  refuses("limited.json", {"--ranks", "2"}, 2, "--ranks: does not go with --jobs");
  refuses("limited.json", {"--devices", "2"}, 2, "--devices: does not go with --jobs");
  refuses("limited.json", {"--topology", "t.json"}, 2, "--topology: does not go with --jobs");
  refuses("limited.json", {"--compute-engines", "0"}, 2,
          "--compute-engines: found '0', expected a whole number from 1 to 256");
  write("bad.json", R"({"clients": [{"name": "a", "copy_us": -1, "kernels": [1]}]})");
  refuses("bad.json", {}, 1,
          path("bad.json") +
              ": client \"a\": copy_us is -1, expected a number of µs, 0 or more and below 104 days");
}

}  // namespace
}  // namespace convoy::app
