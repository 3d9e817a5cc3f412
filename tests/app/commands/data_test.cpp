// Tests the output and the exit statuses of `convoy data` and `convoy bench loader`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/commands/commands.h"

namespace convoy::app {
namespace {

struct Outcome {
  int status;
  std::string out, error;
};

Outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "convoy");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = run_command(static_cast<int>(arguments.size()), arguments.data(),
                                 {add_data_command, add_bench_command});
  std::fflush(stdout);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

void expect_one_line(const Outcome& outcome, int status, const std::vector<std::string>& words) {
  EXPECT_EQ(outcome.status, status) << outcome.error;
  EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  EXPECT_TRUE(outcome.error.starts_with("convoy: ")) << outcome.error;
  for (const auto& word : words) EXPECT_NE(outcome.error.find(word), std::string::npos) << outcome.error;
}

class DataCommand : public testing::Test {
 protected:
  DataCommand()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("convoy_data_command_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~DataCommand() override { std::filesystem::remove_all(folder_); }
  std::string in(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(DataCommand, DrawsAndDescribesASet) {
  const auto drawn =
      run({"data", "synth", in("set.h5"), "--classes", "3", "--size", "16", "--train", "30", "--test", "9"});
  EXPECT_EQ(drawn.status, 0) << drawn.error;
  const auto info = run({"data", "info", in("set.h5")});
  EXPECT_EQ(info.status, 0) << info.error;
  for (const char* part : {"16x16x3", "30 images", "9 images", "mean", "std", "disc", "square"}) {
    EXPECT_NE(info.out.find(part), std::string::npos) << part << " in " << info.out;
  }
}

TEST_F(DataCommand, BadFilesExitWithOne) {
  expect_one_line(run({"data", "info", in("none.h5")}), 1, {"none.h5", "No such file"});
  std::ofstream(in("text.h5")) << "no HDF5";
  expect_one_line(run({"data", "info", in("text.h5")}), 1, {"text.h5", "not an HDF5 file"});
  expect_one_line(run({"data", "convert", in("text.h5"), in("out.h5")}), 1, {"text.h5", "no known data set"});
  expect_one_line(run({"data", "synth", "/proc/no/out.h5"}), 1, {"/proc/no/out.h5", "cannot create"});
  expect_one_line(run({"bench", "loader", "--data", in("none.h5")}), 1, {"none.h5"});
}

TEST_F(DataCommand, WrongFlagsExitWithTwo) {
  EXPECT_EQ(run({"data", "convert", in("a")}).status, 2);
  expect_one_line(run({"data", "convert", in("a"), in("b"), "--format", "cifr"}), 2,
                  {"did you mean 'cifar'?"});
  const auto expect_flag = [&](const char* verb, const std::string& flag, const std::string& value,
                               const std::string& expected) {
    std::vector<std::string> words{"data", verb, in("a")};
    if (std::string(verb) == "convert") words.push_back(in("b"));
    words.insert(words.end(), {flag, value});
    expect_one_line(run(words), 2, {flag + ": found '" + value + "', expected " + expected});
  };
  expect_flag("convert", "--format", "zip",
              "one of auto, images, tiny-imagenet, webdataset, csv, cifar, idx");
  expect_flag("convert", "--format", "1", "one of auto, images, tiny-imagenet, webdataset, csv, cifar, idx");
  expect_flag("convert", "--size", "0", "a whole number from 1 to 4096");
  expect_flag("convert", "--channels", "2", "one of 1, 3");
  expect_flag("convert", "--encode", "jpeg:0",
              "auto, keep, seekable, raw or jpeg:QUALITY with a quality from 1 to 100");
  expect_flag("convert", "--short-side", "0", "a whole number from 1 to 4096");
  expect_flag("convert", "--test-share", "1", "a number in (0, 1)");
  expect_flag("convert", "--threads", "-1", "a whole number from 0 to 1024");
  expect_flag("synth", "--test", "0", "a whole number from 1 to 100000000");
  // Read as an unsigned number, -1 would be 2^64 - 1. It must be refused.
  expect_flag("synth", "--seed", "-1", "a whole number of at least 0");
  expect_flag("synth", "--seed", "abc", "a whole number of at least 0");
  EXPECT_EQ(run({"data", "synth", in("a"), "--classes", "many"}).status, 2);
  EXPECT_EQ(run({"data"}).status, 2);
}

TEST_F(DataCommand, FlagsThatContradictEachOtherExitWithTwo) {
  const auto attempt = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"data", "convert", in("a"), in("b")});
    return run(flags);
  };
  expect_one_line(attempt({"--encode", "keep", "--size", "64"}), 2, {"--size", "--encode keep"});
  expect_one_line(attempt({"--encode", "keep", "--short-side", "64"}), 2, {"--short-side", "--encode keep"});
  expect_one_line(attempt({"--encode", "raw", "--short-side", "64"}), 2, {"--short-side", "--encode raw"});
  expect_one_line(attempt({"--size", "32", "--short-side", "64"}), 2, {"--short-side", "--size"});
}

// A PNG image of one pixel.
const std::string kPixel(
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\b\2\0\0\0\x90wS\xde\0\0\0\fIDAT\x08\xd7"
    "c\xf8\xcf\xc0\0\0\3\1\1\0\x18\xdd\x8d\xb0\0\0\0\0IEND\xae"
    "B`\x82",
    69);

TEST_F(DataCommand, TheClosingLineCountsWhatIsLeftOut) {
  for (const char* path :
       {"set/train/a/0.png", "set/test/a/0.png", "set/train/a/notes.txt", "set/test/a/1.webp"}) {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path, std::ios::binary) << kPixel;
  }
  expect_one_line(run({"data", "convert", in("set"), in("out.h5")}), 1,
                  {"test/a/1.webp", "1 WebP images", "--skip-bad"});
  const auto converted = run({"data", "convert", in("set"), in("out.h5"), "--skip-bad"});
  EXPECT_EQ(converted.status, 0) << converted.error;
  EXPECT_NE(converted.out.find("1 training and 1 test images of 1 classes"), std::string::npos)
      << converted.out;
  EXPECT_NE(converted.out.find("(images, raw)"), std::string::npos) << converted.out;
  EXPECT_NE(converted.out.find("; left out: .txt files: 1, WebP images: 1\n"), std::string::npos)
      << converted.out;
  EXPECT_NE(converted.error.find("--encode raw, as all images have 1x1 pixels"), std::string::npos)
      << converted.error;
  std::filesystem::remove(folder_ / "set/train/a/notes.txt");
  std::filesystem::remove(folder_ / "set/test/a/1.webp");
  EXPECT_NE(
      run({"data", "convert", in("set"), in("out.h5"), "--encode", "keep"}).out.find("nothing left out"),
      std::string::npos);
}

TEST_F(DataCommand, ConvertsWhatTheFlagsSay) {
  // Write a CIFAR-10 set with one image per file.
  for (int i = 1; i <= 6; ++i) {
    const std::string name = i == 6 ? "test_batch.bin" : "data_batch_" + std::to_string(i) + ".bin";
    std::filesystem::create_directories(folder_ / "cifar");
    std::ofstream(folder_ / "cifar" / name, std::ios::binary) << std::string(3073, static_cast<char>(i));
  }
  const auto converted = run({"data", "convert", in("cifar"), in("out.h5"), "--format", "cifar"});
  EXPECT_EQ(converted.status, 0) << converted.error;
  EXPECT_NE(converted.out.find("5 training and 1 test images"), std::string::npos) << converted.out;
  expect_one_line(run({"data", "convert", in("cifar"), in("out.h5"), "--format", "idx"}), 1,
                  {"no train images"});
}

TEST_F(DataCommand, BenchLoaderPrintsOneObject) {
  const auto bench = run({"bench", "loader", "--seconds", "0.1", "--size", "16", "--json"});
  ASSERT_EQ(bench.status, 0) << bench.error;
  const auto row = nlohmann::json::parse(bench.out);
  EXPECT_GT(row.at("images_per_second").get<double>(), 0);
  EXPECT_EQ(row.at("shape"), "16x16x3");
  expect_one_line(run({"bench", "loader", "--augment", "spin"}), 2, {"--augment", "'spin'", "resized-crop"});
}

}  // namespace
}  // namespace convoy::app
