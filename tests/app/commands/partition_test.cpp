// Tests that `convoy partition` and `convoy simulate` print one line that names the flag or the
// file if something cannot be placed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "app/commands/commands.h"

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
  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "partition_command";
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

TEST_F(PartitionCommand, RefusesTimesThatNoClockHolds) {
  const std::string graph = path("graph.json");
  expect({"partition", "--graph", graph, "--devices", "4", "--time-limit", "1e10"}, 2,
         "--time-limit: found '1e10', expected a number in [0, 1e9]");
  expect({"partition", "--graph", graph, "--devices", "4", "--bandwidth-gbps", "1e-300"}, 1,
         "machine: all times and transfers add up to 1e+300 ns, expected below 1e+18");
}

}  // namespace
}  // namespace convoy::app
