// Tests what scripts rely on when they call the program: its exit statuses, one line per error, and
// suggestions of similar names.
#include "app/commands/commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "app/commands/validators.h"
#include "app/errors.h"

namespace convoy::app {
namespace {

struct Outcome {
  int status;
  std::string out, err;
};

void add_fly(CLI::App& app) {
  auto* verb = app.add_subcommand("fly", "a verb that does what its flags say");
  auto* height = verb->add_option("--height", "in metres")->check(CLI::PositiveNumber);
  auto* crash = verb->add_flag("--crash");
  auto* land = verb->add_flag("--land,!--no-land");
  verb->add_option("--wings", "of the plane")->check(one_of({"straight", "swept"}));
  verb->add_option("--stops", "on the way")->delimiter(',')->expected(1, 100);
  verb->add_subcommand("home", "a verb below a verb")->add_option("PLACE")->required();
  verb->callback([=] {
    if (height->count() > 0 && height->as<int>() > 9000) throw UsageError("--height: found 9001");
    if (crash->as<bool>()) throw std::runtime_error("engine: on fire\nfor two reasons\n");
    if (land->as<bool>()) throw ExitStatus{75};
  });
}

Outcome run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  words.insert(words.begin(), "convoy");
  for (auto& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status =
      run_command(static_cast<int>(arguments.size()), arguments.data(), {add_fly, add_bench_command});
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

void expect_failure(const std::vector<std::string>& words, int status, const std::string& line) {
  const auto outcome = run(words);
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.err, "convoy: " + line + "\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(Commands, MessagesRepeatAtMost80CharactersOfAWord) {
  const std::string text(3000, 'x'), brief = std::string(77, 'x') + "…";
  const std::string expected = ", expected one of straight, swept";
  expect_failure({"fly", "--wings", text}, 2, "--wings: found '" + brief + "'" + expected);
  expect_failure({"fly", "--wings=" + text}, 2, "--wings: found '" + brief + "'" + expected);
  expect_failure({"fly", text}, 2, "unknown verb '" + brief + "' of convoy fly");
  expect_failure({text}, 2, "unknown verb '" + brief + "' of convoy");
  expect_failure({"fly", "--stops", "a,," + text}, 2,
                 "--stops: found 'a,," + std::string(74, 'x') + "…', expected a value at every comma");
  const std::string path = "/" + text;
  expect_failure({"fly", "--wings", path}, 2, "--wings: found '" + path + "'" + expected);
  expect_failure({"fly", "--wings=." + path}, 2, "--wings: found '." + path + "'" + expected);
  expect_failure({"fly", "--wings", "1" + path}, 2,
                 "--wings: found '1/" + std::string(75, 'x') + "…'" + expected);
}

TEST(Commands, HelpAndVersionSucceed) {
  EXPECT_EQ(run({"--help"}).status, 0);
  EXPECT_NE(run({"--help"}).out.find("fly"), std::string::npos);
  EXPECT_EQ(run({"fly", "--help"}).status, 0);
  EXPECT_NE(run({"fly", "--help"}).out.find("--height"), std::string::npos);
  EXPECT_EQ(run({"--version"}).out.substr(0, 7), "convoy ");
  EXPECT_EQ(run({"--version"}).status, 0);
}

// If standard output goes to a full disk, the command must fail instead of losing output silently.
TEST(Commands, OutputThatIsLostIsAnError) {
  std::fflush(stdout);
  const int full = ::open("/dev/full", O_WRONLY), kept = ::dup(STDOUT_FILENO);
  ASSERT_GE(full, 0);
  ::dup2(full, STDOUT_FILENO);
  char name[] = "convoy", help[] = "--help";
  char* arguments[] = {name, help};
  testing::internal::CaptureStderr();
  const int status = run_command(2, arguments, {add_fly});
  const std::string said = testing::internal::GetCapturedStderr();
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept), ::close(full);
  std::clearerr(stdout);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(said, "convoy: standard output: cannot write: No space left on device\n");
}

TEST(Commands, GoodCommandLineSaysNothing) {
  const auto outcome = run({"fly", "--height", "3"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

TEST(Commands, WrongCommandLineExitsWithTwoAndNamesWhatIsNear) {
  expect_failure({}, 2, "convoy expects a verb; convoy --help lists them");
  expect_failure({"fyl"}, 2, "unknown verb 'fyl' of convoy; did you mean 'fly'?");
  expect_failure({"train", "--height", "3"}, 2, "unknown verb 'train' of convoy");
  expect_failure({"flyy", "fly", "--height", "3"}, 2, "unknown verb 'flyy' of convoy; did you mean 'fly'?");
  expect_failure({"fly=3"}, 2, "unknown verb 'fly=3' of convoy; did you mean 'fly'?");
  expect_failure({"help"}, 2, "unknown verb 'help' of convoy; did you mean '--help'?");
  expect_failure({"fly", "-h"}, 2, "unknown flag '-h' of convoy fly; did you mean '--help'?");
  expect_failure({"--versoin"}, 2, "unknown flag '--versoin' of convoy; did you mean '--version'?");
  expect_failure({"fly", "--heigth", "3"}, 2,
                 "unknown flag '--heigth' of convoy fly; did you mean '--height'?");
  expect_failure({"fly", "--heigth=3"}, 2, "unknown flag '--heigth' of convoy fly; did you mean '--height'?");
  expect_failure({"fly", "hoem"}, 2, "unknown verb 'hoem' of convoy fly; did you mean 'home'?");
  expect_failure({"fly", "home", "london", "paris"}, 2,
                 "found 'paris', which convoy fly home does not expect");
  expect_failure({"fly", "home"}, 2, "PLACE is required");
  EXPECT_EQ(run({"fly", "--height", "-3"}).status, 2);
  EXPECT_EQ(run({"fly", "--height"}).status, 2);
}

// These errors need checks of our own. The parser library would accept '--crash' as the value of
// --height and '3' as true, and its messages would have another form.
TEST(Commands, ValuesTooFewTooManyOrMissing) {
  expect_failure({"fly", "--height", "--crash"}, 2,
                 "--height: found the flag '--crash', expected a value (in metres)");
  expect_failure({"fly", "--wings", "--height", "3"}, 2,
                 "--wings: found the flag '--height', expected one of straight, swept");
  expect_failure({"fly", "--height"}, 2, "--height: found no value, expected a value (in metres)");
  expect_failure({"fly", "--wings"}, 2, "--wings: found no value, expected one of straight, swept");
  expect_failure({"fly", "--wings", "swep"}, 2,
                 "--wings: found 'swep', expected one of straight, swept; did you mean 'swept'?");
  expect_failure({"fly", "--height", "1", "--height=2"}, 2,
                 "--height: found twice ('1' and '2'), expected once");
  expect_failure({"fly", "--land", "--no-land"}, 2, "--land: found --no-land too, expected one of them");
  for (const std::string stops : {"a,,b", ",a", "a,", ","}) {
    const std::string line = "--stops: found '" + stops + "', expected a value at every comma";
    expect_failure({"fly", "--stops", stops}, 2, line);
    expect_failure({"fly", "--stops=" + stops}, 2, line);
  }
  expect_failure({"fly", "--crash=3"}, 2, "--crash: found '3', expected true or false");
}

TEST(Commands, WhatMayBeGivenTwice) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"fly", "--stops", "a", "--stops", "b"},
        {"fly", "--stops", "a,b"},
        {"fly", "--crash=false", "--crash=false"}}) {
    const auto outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  EXPECT_EQ(run({"fly", "--land", "--land"}).status, 75);
}

TEST(Commands, UsageErrorExitsWithTwoAnyOtherWithOne) {
  expect_failure({"fly", "--height", "9001"}, 2, "--height: found 9001");
  expect_failure({"fly", "--crash"}, 1, "engine: on fire for two reasons");
}

TEST(Commands, BenchCollectivesWantsSizesInOrder) {
  const auto expect_refused = [](const char* from, const char* found) {
    expect_failure({"bench", "collectives", "--from", from, "--to", "1KiB"}, 2,
                   fmt::format("--from: found {}, expected a multiple of 4 up to 1024 (--to)", found));
  };
  expect_refused("6", "6");
  expect_refused("2KiB", "2048");
}

TEST(Commands, BenchCollectivesRefusesWhatItCannotMeasure) {
  expect_failure({"bench", "collectives", "--operations", "overlap"}, 2,
                 "--operations overlap: found --backend cpu, expected cuda");
  expect_failure({"bench", "collectives", "--operations", "buckets", "--total", "4KiB"}, 2,
                 "--total: found 4096, expected a bucket of 1 MiB or more");
}

TEST(Commands, BenchStepRefusesWhatWouldHaveNoEffect) {
  for (const std::string flag : {"--lanes=2", "--tuning-file=plans.json", "--no-wait-times"})
    expect_failure({"bench", "step", "--model", "lenet", "--batch", "4", flag}, 2,
                   flag.substr(0, flag.find('=')) + ": belongs to --backend cuda, found --backend cpu");
}

TEST(Commands, VerbMayEndWithItsOwnStatus) {
  const auto outcome = run({"fly", "--land"});
  EXPECT_EQ(outcome.status, 75);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

// If all processes that a launcher (such as mpirun) starts on a host have the same error, only one
// of them prints it. This process claims local rank 1, but no other process exists, so it must
// print the error itself.
TEST(Commands, AVerbsFailureUnderALauncherIsSaid) {
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  const auto own_usage = run({"fly", "--height", "9001"});
  const auto failure = run({"fly", "--crash"});
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
  EXPECT_EQ(own_usage.status, 2);
  EXPECT_NE(own_usage.err, "");
  EXPECT_EQ(failure.status, 1);
  EXPECT_NE(failure.err, "");
}

}  // namespace
}  // namespace convoy::app
