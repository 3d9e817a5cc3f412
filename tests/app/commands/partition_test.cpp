// Tests the commands `convoy partition` and `convoy simulate`. If a flag or a file is wrong, they
// must print one line that names it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "app/commands/commands.h"
#include "tests/app/model/import/model_maker.h"

namespace convoy::app {
namespace {

class PartitionCommand : public testing::Test {
 protected:
  PartitionCommand() {
    std::filesystem::create_directories(folder_ / "pardnn" / "graph.dot");
    write("pardnn/durations.txt", "");
    write("pardnn/tensor_bytes.txt", "");
    write("graph.json",
          R"({"nodes": [{"id": 1, "time_us": 1, "resident_bytes": 1, "output_bytes": 1, "pin": 3},
              {"id": 2, "time_us": 1, "resident_bytes": 1, "output_bytes": 1}], "edges": [{"from": 1, "to": 2}]})");
  }
  ~PartitionCommand() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  static void expect(std::vector<std::string> words, int status, const std::string& line) {
    words.insert(words.begin(), "convoy");
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_command(static_cast<int>(arguments.size()), arguments.data()), status);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), line.empty() ? "" : "convoy: " + line + "\n");
    const std::string out = testing::internal::GetCapturedStdout();
    EXPECT_EQ(out.empty(), status != 0) << words[1] << " " << words[3] << ": " << out;
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("partition_command-" + std::to_string(::getpid()));
};

TEST_F(PartitionCommand, NamesTheFlagOrTheFile) {
  const std::string graph = path("graph.json");
  expect({"partition", "--graph", graph, "--devices", "4", "--out", path("p.json")}, 0, "");
  expect({"simulate", "--graph", graph, "--placement", path("p.json")}, 0, "");
  expect({"partition", "--graph", graph, "--devices", "2"}, 1,
         graph + ": node 1: pin is 3, expected a device from 0 to 1");
  expect({"simulate", "--graph", graph, "--placement", path("p.json"), "--ranks", "2"}, 2,
         "--ranks: goes with --model");
  expect({"simulate", "--graph", graph, "--placement", path("pardnn")}, 1,
         path("pardnn") + ": is a folder, expected a file");
  expect({"partition", "--graph", path("pardnn"), "--devices", "2"}, 1,
         path("pardnn/graph.dot") + ": is a folder, expected a file");
  expect({"partition", "--graph", "generated:foo:100", "--devices", "2"}, 2,
         "--graph: graph family \"foo\", expected recurrent, crn, wide-resnet, transformer, e3d, random or "
         "sparse");
  expect({"partition", "--graph", "generated:e3d:0", "--devices", "2"}, 2,
         "--graph: 0 nodes, expected 1 or more");
}

TEST_F(PartitionCommand, RefusesFlagsWithoutEffect) {
  const std::string graph = path("graph.json");
  const auto refuse = [&](const std::vector<std::string>& flags, const std::string& line) {
    std::vector<std::string> words = {"partition", "--graph", graph, "--devices", "4"};
    words.insert(words.end(), flags.begin(), flags.end());
    expect(words, 2, line);
  };
  refuse({"--node-latency-us", "9"}, "--node-latency-us: belongs to --devices-per-node, found none");
  refuse({"--moves", "9", "--time-limit", "2"},
         "--moves: belongs to a search without --time-limit, found --time-limit 2");
  refuse({"--algorithm", "heft", "--time-limit", "2"},
         "--time-limit: belongs to --algorithm improve, found --algorithm heft");
  refuse({"--algorithm", "metis", "--seed", "2"},
         "--seed: belongs to --algorithm improve, found --algorithm metis");
}

TEST_F(PartitionCommand, RefusesToWriteTransferTimes) {
  write("timed.json",
        R"({"nodes": [{"id": 1, "fpgaLatency": 1, "size": 1}, {"id": 2, "fpgaLatency": 1, "size": 1}],
            "edges": [{"sourceId": 1, "destId": 2, "cost": 3}]})");
  expect(
      {"partition", "--graph", path("timed.json"), "--devices", "2", "--write-graph", path("ours.json")}, 1,
      "--write-graph: " + path("timed.json") + ": the edges have times (cost), which our format cannot hold");
}

TEST_F(PartitionCommand, ReportsAnUnknownNetworkFirst) {
  expect({"partition", "--graph", "model:resnet51:32", "--devices", "2"}, 2,
         "unknown model \"resnet51\"; did you mean 'resnet50', 'resnet18' or 'resnet34'?");
}

TEST_F(PartitionCommand, RefusesTimesThatNoClockHolds) {
  const std::string graph = path("graph.json");
  expect({"partition", "--graph", graph, "--devices", "4", "--time-limit", "1e10"}, 2,
         "--time-limit: found '1e10', expected a number in [0, 1e9]");
  expect({"partition", "--graph", graph, "--devices", "4", "--bandwidth-gbps", "1e-300"}, 1,
         "machine: all times and transfers add up to 1e+300 ns, expected below 1e+18");
}

// `convoy partition` must take an ONNX file and place the whole training step of its network:
// forward, backward and updates, with estimated times.
TEST_F(PartitionCommand, TakesTheStepOfAnOnnxFile) {
  onnx_import::ModelMaker maker({-1, 3, 32, 32});
  maker.node("Conv", {"x", maker.weight("conv.weight", {8, 3, 3, 3})}, "c",
             {.lists = {{"pads", {1, 1, 1, 1}}}});
  maker.node("Relu", {"c"}, "r", {});
  maker.classify("r", 8);
  write("net.onnx", maker.model().SerializeAsString());
  write("machine.json",
        R"({"name": "two", "source": "made up", "devices_per_node": 2, "call_us": 8, "overlap": 0.4,
            "within_node": {"latency_us": 1.5, "gbytes_per_second": 360},
            "between_nodes": {"latency_us": 6, "gbytes_per_second": 40, "ports": 1},
            "device": {"gflops": {"fp32": 40000, "tf32": 220000, "bf16": 445000}, "gbytes_per_second": 3840,
                       "launch_us": 2}})");
  const std::string graph = "model:" + path("net.onnx") + ":4";
  expect({"partition", "--graph", graph, "--topology", path("machine.json"), "--devices", "2",
          "--write-graph", path("step.json"), "--out", path("p.json")},
         0, "");
  expect({"simulate", "--graph", path("step.json"), "--placement", path("p.json")}, 0, "");
  std::ifstream file(path("step.json"));
  const std::string step(std::istreambuf_iterator<char>(file), {});
  for (const char* name : {"conv", "relu", "update"}) EXPECT_NE(step.find(name), std::string::npos) << name;
  expect({"partition", "--graph", graph, "--devices", "2"}, 2,
         "--graph model: takes times from --profile, or estimates them for the device of a --topology as in "
         "jobs/topologies");
}

}  // namespace
}  // namespace convoy::app
