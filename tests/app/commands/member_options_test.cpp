// Tests the specifications of --members, which list trainings that run together (the members), and
// the options in which members must not differ.
#include "app/commands/member_options.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/errors.h"
#include "app/training/members.h"

namespace convoy::app {
namespace {

TrainOptions base() {
  TrainOptions options;
  options.model = "lenet", options.data = "synthetic", options.out = "out";
  options.steps = 10, options.global_batch = 8;
  return options;
}

template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}
std::string error_of_spec(const std::string& spec) {
  return error_of([&] { Members(member_options(spec, base())); });
}

std::string file_with(const std::string& text) {
  const auto path =
      std::filesystem::temp_directory_path() / ("convoy-members-" + std::to_string(::getpid()) + ".toml");
  std::ofstream(path) << text;
  return path.string();
}

TEST(MemberOptions, OfALisARangeAndAProduct) {
  const auto seeds = member_options("seed=1..3,7", base());
  ASSERT_EQ(seeds.size(), 4u);
  EXPECT_EQ(seeds[2].seed, 3);
  EXPECT_EQ(seeds[3].seed, 7);
  EXPECT_EQ(seeds[3].global_batch, 8) << "the rest is the base's";
  for (const char* spec : {"learning-rate=0.1,0.2 seed=1..2", "learning-rate=0.1,0.2;seed=1..2"}) {
    const auto both = member_options(spec, base());
    ASSERT_EQ(both.size(), 4u);
    EXPECT_EQ(both[1].learning_rate, 0.1);
    EXPECT_EQ(both[1].seed, 2);
    EXPECT_EQ(both[2].learning_rate, 0.2);
  }
  const auto flags = member_options("nesterov=true,false schedule=cosine,constant", base());
  EXPECT_TRUE(flags[1].nesterov);
  EXPECT_EQ(flags[1].schedule, ScheduleKind::constant);
  EXPECT_FALSE(flags[2].nesterov);
}

TEST(MemberOptions, OfAFile) {
  const auto rows = member_options(file_with("[[member]]\nseed = 4\n[[member]]\nlearning-rate = "
                                             "0.5\nmilestones = [3, 6]\nschedule = \"step\"\n"),
                                   base());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].seed, 4);
  EXPECT_EQ(rows[1].seed, 1);
  EXPECT_EQ(rows[1].milestones, (std::vector<double>{3, 6}));
}

TEST(MemberOptions, ErrorsSayWhatWasFoundAndExpected) {
  const std::string file = file_with("[[member]]\nsed = 4\n");
  const std::pair<std::string, std::string> cases[] = {
      {"sed=1,2",
       "--members: found 'sed', expected the name of a flag of convoy train, such as seed or learning-rate, "
       "or width"},
      {file,
       "--members: found 'sed', expected the name of a flag of convoy train, such as seed or learning-rate, "
       "or width"},
      {"global-batch=8,16",
       "--members: members must not differ in 'global-batch': all members take the same steps"},
      {"sync-batch-norm=true,false",
       "--members: members must not differ in 'sync-batch-norm': a member trains on one rank"},
      {"width=1,2",
       "--members: width: model lenet: has no width, expected one with a width, such as wrn28_10"},
      {"width=0", "--members: width: found '0', expected a whole number from 1"},
      {"width=wide", "--members: width: found 'wide', expected a whole number from 1"},
      {"lanes=1,2", "--members: members must not differ in 'lanes': all members run in the same processes"},
      {"seed=", "--members: seed: found 'seed=', expected a value at every comma"},
      {"seed=1,,2", "--members: seed: found 'seed=1,,2', expected a value at every comma"},
      {" ; ", "--members: found no list, expected KEY=VALUE,VALUE,… such as seed=1..64"},
      {"seed", "--members: found 'seed', expected KEY=VALUE,VALUE,… such as seed=1..64, or a file FILE.toml"},
      {"seed=5..2",
       "--members: seed: found '5..2', expected two whole numbers in ascending order, such as 1..64"},
      {"seed=1..2 seed=3", "--members: found 'seed' twice, expected each key once"},
      {"seed=1..9999", "--members: seed: found '1..9999', expected at most 4096 members"},
      {"seed=1,2,1", "--members: members 1 and 3 have the same values, expected different ones"},
      {"milestones=3,4",
       "--members: 'milestones' takes a list of values itself, expected a TOML file with a row for each "
       "member"}};
  for (const auto& [spec, message] : cases) EXPECT_EQ(error_of_spec(spec), message) << spec;
  const std::string negative = error_of_spec("learning-rate=-1");
  EXPECT_TRUE(negative.starts_with("--members: key 'learning-rate': found")) << negative;
  const std::string list = file_with("[[member]]\nwidth = [1, 2]\nmodel = \"wrn16_1\"\n");
  EXPECT_EQ(error_of_spec(list), list + ": width: found '1,2', expected a whole number from 1");
  const std::string empty = file_with("");
  EXPECT_EQ(error_of_spec(empty),
            "--members: " + empty + ": found no [[member]], expected one for each member");
}

TEST(MemberOptions, WidthsAreNetworks) {
  TrainOptions wide = base();
  wide.model = "wrn16_4";
  const auto widths = member_options("width=1..3 seed=1,2", wide);
  ASSERT_EQ(widths.size(), 6u);
  EXPECT_EQ(widths[1].model, "wrn16_1");
  EXPECT_EQ(widths[4].model, "wrn16_3");
  EXPECT_EQ(widths[4].seed, 1);
  const auto row = member_options(file_with("[[member]]\nwidth = 2\nmodel = \"wrn28_10\"\n"), base());
  EXPECT_EQ(row.at(0).model, "wrn28_2") << "the width is that of the row's model";
}

TEST(Members, HaveAShapeEachCompiledStep) {
  const std::pair<std::string, std::vector<std::vector<int>>> cases[] = {
      {"seed=1,2 learning-rate=0.1,0.2 label-smoothing=0,0.1 nesterov=true,false",
       {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}},
      {"model=lenet,resnet18 seed=1,2", {{0, 1}, {2, 3}}},
      {"seed=1,2 optimizer=sgd,adamw", {{0, 2}, {1, 3}}},
      {"momentum=0,0.9,0.8", {{0}, {1, 2}}},
      {"ema=0,0.9", {{0}, {1}}},
      {"clip-gradient-norm=0,1", {{0}, {1}}},
      {"mixup=0.2,0 cutmix=0,1", {{0, 1, 3}, {2}}},
      {"drop-path=0,0.1", {{0}, {1}}}};
  for (const auto& [spec, shapes] : cases)
    EXPECT_EQ(Members(member_options(spec, base())).shapes(), shapes) << spec;
  Members running(member_options("model=lenet,resnet18 seed=1,2", base()));
  running.result(0).status = MemberStatus::diverged;
  running.result(2).status = running.result(3).status = MemberStatus::stopped;
  EXPECT_EQ(running.shapes(), (std::vector<std::vector<int>>{{1}}));
}

// The worse half by accuracy must stop. If members are equally good, the later ones must stop.
TEST(Members, AreHalvedOncePerRound) {
  Members members(member_options("seed=1..5", base()));
  const double accuracies[] = {0.5, 0.1, 0.5, 0.9, 0.5};
  for (int i = 0; i < 5; ++i) {
    members.result(i).accuracy = accuracies[i];
    members.result(i).steps = 10;
  }
  EXPECT_EQ(members.halve(10), (std::vector<int>{4, 1}));
  EXPECT_EQ(members.running(), (std::vector<int>{0, 2, 3}));
  EXPECT_TRUE(members.halve(10).empty()) << "this round was held";
  for (const int i : members.running()) members.result(i).steps = 20;
  EXPECT_EQ(members.halve(20), (std::vector<int>{2}));
}

TEST(Members, TheTableIsReadAgain) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("convoy-members-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  TrainOptions options = base();
  options.out = folder.string();
  Members written(member_options("seed=1..3", options)), read = written;
  written.result(0) = {MemberStatus::finished, 10, 1.25, 0.5, 0.625, "abc"};
  written.result(1) = {MemberStatus::diverged, 7};
  written.result(2) = {MemberStatus::stopped, 5, 2.5, 0.25, 0.25, ""};
  written.write();
  read.read(10);
  EXPECT_EQ(read.table(), written.table());
  EXPECT_EQ(read.result(0).parameters_sha256, "abc");
  EXPECT_TRUE(read.running().empty());
  read.read(20);
  EXPECT_EQ(read.running(), std::vector{0}) << "the run is longer now";
  Members more(member_options("seed=1..4", options));
  EXPECT_EQ(error_of([&] { more.read(10); }), "--members: found 4 members, but the run to resume has 3");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace convoy::app
