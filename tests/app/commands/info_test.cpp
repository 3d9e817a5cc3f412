// Checks that the figures of `convoy info` are those of the network, since people and scripts rely
// on them.
#include "app/commands/info.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/model/zoo/zoo.h"

namespace convoy::app {
namespace {

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), {"convoy", "info"});
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = run_command(static_cast<int>(arguments.size()), arguments.data(), {add_info_command});
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(Info, TotalsAreTheSumsOfTheRows) {
  const Network network = make_network("resnet18", {4, 3, 32, 32}, 10);
  const auto rows = layer_table(network);
  ASSERT_EQ(rows.size(), network.layers().size());
  EXPECT_EQ(total_of(rows).parameters, network.parameter_count());
  EXPECT_EQ(rows[0].kind, "input");
  EXPECT_EQ(rows[1].name, "conv1");
  EXPECT_EQ(rows[1].attributes, "7x7, stride 2, padding 3");
  EXPECT_EQ(rows[1].parameters, 64 * 3 * 49);
  EXPECT_EQ(rows[1].forward_flops, 2.0 * 4 * 64 * 16 * 16 * 3 * 49);
  EXPECT_EQ(rows[1].output_bytes, 4 * 64 * 16 * 16 * 4);
  EXPECT_EQ(rows[1].inputs, std::vector<std::string>{"input"});
}

TEST(Info, TableEndsWithTheTotals) {
  const Outcome outcome = run({"--model", "alexnet"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("features.0"), std::string::npos);
  const auto total = outcome.out.find("\ntotal ");
  ASSERT_NE(total, std::string::npos);
  EXPECT_NE(outcome.out.find("61100840", total), std::string::npos);
}

TEST(Info, JsonHoldsTheSameFigures) {
  const Outcome outcome = run(
      {"--model", "resnet50", "--size", "64", "--channels", "1", "--classes", "7", "--batch", "2", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto object = nlohmann::json::parse(outcome.out);
  const Network network = make_network("resnet50", {2, 1, 64, 64}, 7);
  EXPECT_EQ(object["input"], (nlohmann::json{2, 1, 64, 64}));
  EXPECT_EQ(object["classes"], 7);
  EXPECT_EQ(object["parameters"], network.parameter_count());
  EXPECT_EQ(object["layers"].size(), network.layers().size());
  EXPECT_EQ(object["layers"].back()["output"], (nlohmann::json{2, 7}));
  EXPECT_EQ(object["layers"].back()["inputs"], nlohmann::json{"avgpool"});
}

TEST(Info, ClassesFollowTheImageSize) {
  EXPECT_EQ(nlohmann::json::parse(run({"--model", "resnet18", "--json"}).out)["classes"], 1000);
  EXPECT_EQ(nlohmann::json::parse(run({"--model", "resnet18", "--size", "32", "--json"}).out)["classes"], 10);
}

TEST(Info, WithoutAModelNamesThemAll) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.status, 0);
  for (const std::string& name : network_names())
    EXPECT_NE(outcome.out.find(name), std::string::npos) << name;
}

TEST(Info, BuildNamesCompilerLibrariesAndCommit) {
  const auto object = nlohmann::json::parse(run({"--build", "--json"}).out);
  for (const char* key : {"convoy", "commit", "compiler", "cuda", "MPI", "HDF5", "oneDNN"})
    EXPECT_FALSE(object.value(key, "").empty()) << key;
  EXPECT_NE(run({"--build"}).out.find("oneDNN"), std::string::npos);
}

TEST(Info, MistakesAreOneLine) {
  const Outcome unknown = run({"--model", "resnet19"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.err,
            "convoy: unknown model \"resnet19\"; did you mean 'resnet18', 'resnet34' or 'resnet50'?\n");
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(run({"--model", "lenet", "--size", "0"}).status, 2);
  EXPECT_EQ(run({"--model", "lenet", "--build"}).status, 2);
  EXPECT_EQ(run({"--model", "wrn27_10"}).status, 2);
  EXPECT_EQ(run({"--model", "alexnet", "--size", "32"}).status, 1);
  EXPECT_EQ(run({"--model", "alexnet", "--size", "32"}).err,
            "convoy: network alexnet, layer features.12: its window of 3x3 does not fit into 1x256x1x1\n");
}

TEST(Info, TheMemoryCurveTradesTimeForBytes) {
  const Outcome outcome = run({"--model", "resnet18", "--size", "64", "--batch", "4", "--memory", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto curve = nlohmann::json::parse(outcome.out);
  const auto& points = curve["points"];
  ASSERT_GT(points.size(), 2u);
  EXPECT_EQ(points[0]["recomputed"], 0);
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_LT(points[i]["bytes"], points[i - 1]["bytes"]);
    EXPECT_GT(points[i]["recomputed"], 0);
    EXPECT_GT(points[i]["expected_ms"], points[0]["expected_ms"]);
  }
  EXPECT_NE(curve["least_at"].get<std::string>().find(" of "), std::string::npos);
}

TEST(Info, TheMemoryCurveIsDrawn) {
  const std::string file = testing::TempDir() + "convoy-memory-curve.svg";
  const Outcome outcome =
      run({"--model", "resnet18", "--size", "64", "--batch", "4", "--memory", "--plot", file});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("The last row is the least"), std::string::npos);
  std::ifstream stream(file);
  const std::string svg{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n")) << svg;
  std::size_t circles = 0;
  for (auto at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++circles;
  EXPECT_GT(circles, 2u);
  std::remove(file.c_str());
}

TEST(Info, MemoryNeedsAModelAndItsFlagsNeedMemory) {
  EXPECT_EQ(run({"--memory"}).status, 2);
  EXPECT_EQ(run({"--model", "lenet", "--plot", "x.svg"}).status, 2);
  EXPECT_EQ(run({"--model", "lenet", "--precision", "bf16"}).status, 2);
  EXPECT_EQ(run({"--model", "lenet", "--size", "32", "--memory", "--precision", "bf16"}).status, 2);
}

}  // namespace
}  // namespace convoy::app
