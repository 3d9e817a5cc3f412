// Tests `convoy simulate --model` from the command line: its report of the inputs, and the flags
// that it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/model/zoo/zoo.h"
#include "app/prediction/predict.h"

namespace convoy::app {
namespace {

using Json = nlohmann::json;

class SimulateTraining : public testing::Test {
 protected:
  struct Result {
    int status;
    std::string out, err;
    std::vector<Json> rows() const {
      std::vector<Json> rows;
      std::istringstream lines(out);
      for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
      return rows;
    }
  };

  SimulateTraining() {
    std::filesystem::create_directories(folder_);
    write("t.json", R"({"name": "two hosts", "devices_per_node": 1, "call_us": 10, "overlap": 0.5,
                        "between_nodes": {"latency_us": 30, "gbytes_per_second": 1},
                        "device": {"gflops": {"fp32": 800, "bf16": 800}, "gbytes_per_second": 80, "launch_us": 1}})");
  }
  ~SimulateTraining() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  // Writes a profile of a training of lenet on a CPU, whose times are estimated and not measured.
  // Returns the file's path.
  std::string profile() const {
    const Cluster cluster = Cluster::read(path("t.json"));
    const Network network = make_network("lenet", {16, 3, 32, 32}, 10);
    std::string text =
        R"({"model":"lenet","backend":"cpu","precision":"fp32","ranks":1,"batch":16,"size":32,"ms_mean":9.0})"
        "\n";
    for (const TimedOperation& operation :
         estimate_profile(network, Precision::fp32, cluster.device()).operations)
      text += Json({{"layer", operation.layer}, {"op", operation.kind}, {"ms", operation.ms}}).dump() + "\n";
    write("profile.jsonl", text);
    return path("profile.jsonl");
  }
  Result simulate(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"convoy", "simulate", "--model", "lenet", "--topology", path("t.json")};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = run_command(static_cast<int>(arguments.size()), arguments.data());
    return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("simulate_training-" + std::to_string(::getpid()));
};

TEST_F(SimulateTraining, SaysTheProfilesPrecisionSizeAndBackend) {
  const Result result = simulate({"--profile", profile(), "--ranks", "1", "--scaling", "weak", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json row = result.rows().at(0);
  EXPECT_EQ(row.at("precision"), "fp32");
  EXPECT_EQ(row.value("size", 0), 32);
  EXPECT_EQ(row.value("backend", ""), "cpu");
  const Result table = simulate({"--profile", profile(), "--ranks", "1"});
  EXPECT_NE(table.out.find("fp32 at 32 pixels, cpu"), std::string::npos) << table.out;
  const Result estimate = simulate({"--batch", "4", "--ranks", "1", "--json"});
  EXPECT_EQ(estimate.rows().at(0).at("precision"), "bf16");
  EXPECT_EQ(estimate.rows().at(0).value("size", 0), 224);
  write("t.json", R"({"backend": "cpu", "devices_per_node": 1, "call_us": 10, "overlap": 0.5,
                      "between_nodes": {"latency_us": 30, "gbytes_per_second": 1},
                      "device": {"gflops": {"fp32": 800}, "gbytes_per_second": 80, "launch_us": 1}})");
  EXPECT_EQ(simulate({"--batch", "4", "--ranks", "1", "--json"}).rows().at(0).at("precision"), "fp32");
}

TEST_F(SimulateTraining, RefusesFlagsThatContradictTheProfile) {
  const std::string file = profile();
  const Result precision = simulate({"--profile", file, "--precision", "bf16"});
  EXPECT_EQ(precision.status, 2);
  EXPECT_EQ(precision.err, "convoy: --precision: found bf16, but --profile " + file + " is of fp32\n");
  const Result size = simulate({"--profile", file, "--size", "224"});
  EXPECT_EQ(size.status, 2);
  EXPECT_EQ(size.err, "convoy: --size: found 224, but --profile " + file + " is of 32\n");
  EXPECT_EQ(simulate({"--profile", file, "--precision", "fp32", "--size", "32"}).status, 0);
}

// These flags have no effect with --model. If the command ignored --report, for example, the user
// would wait for its file.
TEST_F(SimulateTraining, RefusesFlagsOfPlacements) {
  for (const std::string flag : {"--report", "--trace", "--graph", "--placement", "--memory", "--devices"}) {
    const Result result = simulate({"--batch", "4", flag, "8"});
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err, "convoy: " + flag + ": does not go with --model\n");
  }
  EXPECT_EQ(simulate({"--batch", "4", "--json"}).status, 0);
}

TEST_F(SimulateTraining, SaysForWhichRankCountsTheNetworkWasMeasured) {
  write("c.jsonl", R"({"operation":"all-reduce","ranks":2,"bytes":1000,"microseconds":50.0})"
                   "\n"
                   R"({"operation":"all-reduce","ranks":2,"bytes":1000000,"microseconds":600.0})"
                   "\n");
  const std::vector<std::string> flags{"--batch", "4", "--collectives", path("c.jsonl"), "--ranks", "2,4"};
  EXPECT_NE(simulate(flags).out.find("network measured at 2 ranks"), std::string::npos)
      << simulate(flags).out;
  auto json = flags;
  json.push_back("--json");
  const Json row = simulate(json).rows().at(0);
  EXPECT_EQ(row.at("network"), "measured");
  EXPECT_EQ(row.value("network_ranks", Json()), Json::array({2}));
}

TEST_F(SimulateTraining, SaysWhichRankCountsTheGlobalBatchLeavesWithoutAnImage) {
  const Result some = simulate({"--batch", "4", "--ranks", "2,8,16", "--scaling", "strong", "--json"});
  EXPECT_EQ(some.status, 0);
  EXPECT_EQ(some.rows().size(), 1u);
  EXPECT_EQ(some.err, "convoy: strong scaling: left out 8, 16 ranks, more than the global batch of 4\n");
  const Result none = simulate({"--batch", "4", "--ranks", "8,16", "--scaling", "strong"});
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.err, "convoy: --ranks: found 8, 16, expected one up to the global batch of 4\n");
  EXPECT_EQ(simulate({"--batch", "4", "--ranks", "8,16"}).status, 0);  // weak scaling works
}

}  // namespace
}  // namespace convoy::app
