// Tests the configuration file of `convoy train`, and the recipes, which are such files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/model/zoo/zoo.h"
#include "tests/app/training/parsed_options.h"

namespace convoy::app {
namespace {

class ConfigFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".toml");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_.string();
  }
  void expect_error(const std::string& text, const std::string& message) {
    const auto file = write(text);
    EXPECT_EQ(error_of(with({"--config", file})), file + ": " + message) << text;
  }
  // Compares only the start of the message; the rest is toml++'s and differs between its versions.
  void expect_no_toml(const std::string& text, const std::string& line) {
    const auto file = write(text);
    const std::string expected = file + ": " + line + ", expected TOML (";
    EXPECT_EQ(error_of(with({"--config", file})).substr(0, expected.size()), expected) << text;
  }
  std::filesystem::path path_;
};

TEST_F(ConfigFile, FillsWhatTheCommandLineLeavesOpen) {
  const auto file = write(
      "# a run\n"
      "\n"
      "model = \"resnet18\"   # a model's name\n"
      "data = 'a file, with \"signs\" and a #.h5'\n"
      "learning-rate = 0.4\r\n"
      "schedule=\"step\"\n"
      "milestones = [1,  # over two lines\n"
      "              2.5]\n"
      "nesterov = true\n"
      "sync-batch-norm = false\n"
      "memory-limit = \"2GiB\"\n");
  const auto options = parse({"--model", "lenet", "--config", file, "--learning-rate", "0.3"});
  EXPECT_EQ(options.model, "lenet") << "the command line wins";
  EXPECT_EQ(options.learning_rate, 0.3) << "also after --config";
  EXPECT_EQ(options.data, "a file, with \"signs\" and a #.h5");
  EXPECT_EQ(options.milestones, (std::vector<double>{1, 2.5}));
  EXPECT_TRUE(options.nesterov);
  EXPECT_FALSE(options.sync_batch_norm);
  EXPECT_EQ(options.memory_limit, 2ull << 30);
}

// Every recipe must have all options of a run except data and folder, and only valid ones.
// Otherwise its user would find a typo or an old flag first.
TEST(Recipes, AreCompleteRuns) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CONVOY_RECIPES)) {
    const std::string file = entry.path().string();
    SCOPED_TRACE(file);
    const Words words{"--config", file, "--data", "d.h5", "--out", "o"};
    EXPECT_EQ(error_of(words, 8), "");
    const TrainOptions options = parse(words);
    const std::int64_t side = options.size > 0 ? options.size : 32,
                       images = options.size > 0 ? 1281167 : 50000;
    EXPECT_NO_THROW(make_schedule(options, images / options.global_batch));
    EXPECT_NO_THROW(make_network(options.model, {1, 3, side, side}, options.size > 0 ? 1000 : 10));
    std::ifstream stream(file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (const char* said : {"--config jobs/recipes/", "# Source: ", "# Expected "})
      EXPECT_NE(text.find(said), std::string::npos) << said;
    EXPECT_NE(text.find(entry.path().filename()), std::string::npos);
    ++recipes;
  }
  EXPECT_EQ(recipes, 5);
}

TEST_F(ConfigFile, AByteOrderMarkIsNoPartOfTheFirstKey) {
  EXPECT_EQ(parse({"--config", write("\xEF\xBB\xBFmodel = \"vgg16\"\ngamma = 0.5\n")}).model, "vgg16");
  expect_error("\xEF\xBB\xBFmodle = \"vgg16\"\n", "unknown key 'modle'; did you mean 'model'?");
}

TEST_F(ConfigFile, FlagOnTheCommandLineDisplacesItsAlternative) {
  const auto file = write("epochs = 15\nwarmup-epochs = 2\n");
  const auto options = parse({"--steps", "10", "--config", file});
  EXPECT_EQ(options.epochs, 0);
  EXPECT_EQ(options.steps, 10);
  EXPECT_EQ(options.warmup_epochs, 2);
}

TEST_F(ConfigFile, UnknownKeys) {
  expect_error("epoch = 3\n", "unknown key 'epoch'; did you mean 'epochs'?");
  expect_error("learning_rate = 3\n", "unknown key 'learning_rate'; did you mean 'learning-rate'?");
  expect_error("config = \"x\"\n", "unknown key 'config'");
  expect_error("help = true\n", "unknown key 'help'");
}

TEST_F(ConfigFile, WrongTypes) {
  expect_error("limit-test = \"many\"\n",
               "key 'limit-test': found 'many', expected a whole number of at least 0");
  expect_error("limit-test = [1, 2]\n", "key 'limit-test': found 2 values, expected one");
  expect_error("limit-test = true\n",
               "key 'limit-test': found 'true', expected a whole number of at least 0");
  expect_error("gamma = \"half\"\n", "key 'gamma': found 'half', expected a number in (0, 1]");
  expect_error("flip = 3\n", "key 'flip': found '3', expected true or false");
  expect_error("flip = \"yes\"\n", "key 'flip': found 'yes', expected true or false");
  expect_error("limit-test = 1.0\n", "key 'limit-test': found '1.0', expected a whole number of at least 0");
  expect_error("milestones = [[1]]\n",
               "key 'milestones': found '[ 1 ]', expected a value or one list of values");
  expect_error("milestones = \"1,,2\"\n", "key 'milestones': found '1,,2', expected a value at every comma");
  expect_error("milestones = [1, \"x\"]\n", "key 'milestones': found 'x', expected a number in (0, 1e9]");
}

TEST_F(ConfigFile, LinesThatAreNotKeysAndValues) {
  expect_error("[train]\nflip = true\n",
               "line 1: found '[train]', expected key = value: tables are not used here");
  expect_error("flip = true\ntrain.flip = true\n",
               "line 2: found 'train.flip = true', expected key = value: tables are not used here");
  expect_no_toml("\nflip\n", "line 2: found 'flip'");
  expect_no_toml("gamma =\n", "line 1: found 'gamma ='");
  expect_no_toml("gamma = # 1\n", "line 1: found 'gamma = # 1'");
  expect_no_toml("limit-test = 1 2\n", "line 1: found 'limit-test = 1 2'");
  expect_no_toml("limit-test = 010\n", "line 1: found 'limit-test = 010'");
  expect_no_toml("milestones = [1,,2]\n", "line 1: found 'milestones = [1,,2]'");
  expect_no_toml("flip = true\nmodel = \"lenet\n", "line 2: found 'model = \"lenet'");
  expect_no_toml("model = 'lenet\"\n", "line 1: found 'model = 'lenet\"'");
  expect_no_toml("gamma = 1\nflip = true\ngamma = 0.5\n", "line 3: found 'gamma = 0.5'");
}

TEST_F(ConfigFile, FileThatCannotBeRead) {
  EXPECT_EQ(error_of(with({"--config", "/no/such.toml"})),
            "/no/such.toml: cannot be read, expected a TOML file");
  EXPECT_EQ(error_of(with({"--config", "/proc"})), "/proc: cannot be read, expected a TOML file");
}

TEST_F(ConfigFile, AlternativesInTheFileAreChecked) {
  const auto file = write("epochs = 15\nsteps = 3\n");
  EXPECT_EQ(error_of({"--model", "m", "--data", "d", "--out", "o", "--global-batch", "8", "--config", file}),
            "--epochs, --steps: found both (15 and 3), expected one");
}

}  // namespace
}  // namespace convoy::app
