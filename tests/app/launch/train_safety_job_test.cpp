// Tests runs that would give wrong results without any message. They must be refused or must warn:
// ranks with different options or data, classes in another order, a folder that already holds a
// run, and a learning rate that jumps.
#include <array>
#include <numeric>

#include "tests/app/launch/edit_store.h"
#include "tests/app/launch/train_job.h"

namespace convoy::test {
namespace {

class TrainSafety : public TrainJob {
 protected:
  // Runs a job on two ranks: `flags` are for both, `first` and `second` for rank 0 and rank 1. The
  // shell splits the flags at spaces.
  static Outcome run_two(const std::string& flags, const std::string& first, const std::string& second) {
    const std::string program = std::string(" -np 1 ") + CONVOY_PROGRAM + " ";
    return run(std::string(CONVOY_MPIEXEC) + " --oversubscribe --bind-to none --mca mpi_yield_when_idle 1" +
               program + flags + " " + first + " :" + program + flags + " " + second);
  }
  static void expect_line(const Outcome& outcome, int status, const std::string& part) {
    EXPECT_EQ(outcome.status, status) << outcome.text;
    ASSERT_EQ(outcome.ours().size(), 1u) << outcome.text;
    EXPECT_NE(outcome.ours()[0].find(part), std::string::npos) << outcome.text;
  }
  static std::string synth(const std::string& name, const std::string& flags) {
    const Outcome drawn = run(std::string(CONVOY_PROGRAM) + " data synth " + out(name) + " " + flags);
    EXPECT_EQ(drawn.status, 0) << drawn.text;
    return out(name);
  }
  static std::vector<std::string> names() {
    std::vector<std::string> list;
    for (char letter = 'a'; letter < 'k'; ++letter) list.emplace_back(5, letter);
    return list;
  }
  static double test_loss(const Outcome& outcome) {
    const auto line = outcome.text.find('{');
    return json::parse(outcome.text.substr(line, outcome.text.find('\n', line) - line))["test_loss"];
  }
};

TEST_F(TrainSafety, RanksWithOtherFlagsEndWithOneLine) {
  const std::string flags =
      "train --model lenet --threads 1 --steps 3 --timeout 20 --data " + data() + " --out " + out("flags");
  for (const auto& [first, second, line] :
       {std::array{"--global-batch 50", "--global-batch 60", "--global-batch: rank 0 has 50, rank 1 has 60"},
        {"--global-batch 50 --learning-rate 0.1", "--global-batch 50 --learning-rate 0.2",
         "--learning-rate: rank 0 has 0.1, rank 1 has 0.2"},
        {"--global-batch 50", "--global-batch 50 --resume", "--resume: rank 0 has false, rank 1 has true"}})
    expect_line(run_two(flags, first, second), 2, line);
  EXPECT_EQ(
      run_two("train --model lenet --steps 3 --global-batch 50 --data " + data() + " --out " + out("threads"),
              "--threads 1", "--threads 2")
          .status,
      0);
}

TEST_F(TrainSafety, RanksWithOtherDataEndWithOneLine) {
  const std::string flags =
      "train --model lenet --global-batch 50 --threads 1 --steps 3 --timeout 20 --out " + out("data");
  const std::string fewer = synth("fewer.h5", "--classes 10 --size 32 --train 500 --test 90 --seed 3");
  const std::string smaller = synth("smaller.h5", "--classes 10 --size 28 --train 600 --test 90 --seed 3");
  const std::string classes = synth("classes.h5", "--classes 9 --size 32 --train 600 --test 90 --seed 3");
  const std::string other_names = out("names.h5"), other_labels = out("labels.h5"),
                    renamed = out("renamed.h5");
  rename_classes(data(), renamed, names());
  auto swapped = names();
  std::swap(swapped[3], swapped[4]);
  rename_classes(data(), other_names, swapped);
  fs::copy_file(renamed, other_labels, fs::copy_options::overwrite_existing);
  renumber_labels(other_labels, "train", {0, 1, 2, 4, 3, 5, 6, 7, 8, 9});
  for (const auto& [first, second, line] :
       {std::array{data(), fewer, std::string("training images: rank 0 has 600, rank 1 has 500")},
        {data(), smaller, "shape of the images: rank 0 has 32x32x3, rank 1 has 28x28x3"},
        {data(), classes, "classes: rank 0 has 10, rank 1 has 9"},
        {renamed, other_names, "class 3: rank 0 has 'ddddd', rank 1 has 'eeeee'"},
        {renamed, other_labels, "SHA-256 of the training labels: rank 0 has "}}) {
    const Outcome outcome = run_two(flags, "--data " + first, "--data " + second);
    expect_line(outcome, 1, second + " of rank 1 is not the data of rank 0: " + line);
    EXPECT_LT(outcome.seconds, 15);
  }
  // If rank 1 has the same data in a file of another name, the run must start.
  const std::string copy = out("copy.h5");
  fs::copy_file(data(), copy);
  EXPECT_EQ(run_two(flags, "--data " + data(), "--data " + copy).status, 0);
}

TEST_F(TrainSafety, ClassesAreMatchedByName) {
  const std::string named = out("named.h5"), turned = out("turned.h5"), strange = out("strange.h5");
  rename_classes(data(), named, names());
  // This data set has the same images and classes, but every class has the next higher number
  // (modulo 10). Evaluation must match the classes by name.
  std::vector<std::string> order = names();
  std::rotate(order.begin(), order.end() - 1, order.end());
  rename_classes(data(), turned, order);
  for (const char* split : {"train", "test"}) renumber_labels(turned, split, {1, 2, 3, 4, 5, 6, 7, 8, 9, 0});
  auto others = names();
  others[7] = "zebra";
  rename_classes(data(), strange, others);

  const std::string flags =
      "train --model linear --global-batch 50 --threads 1 --seed 1 --learning-rate 0.001 --out " +
      out("classes") + " --data ";
  const Outcome trained = run(command(1, flags + named + " --epochs 2"));
  ASSERT_EQ(trained.status, 0) << trained.text;
  const std::string evaluate = "evaluate --json --threads 1 --checkpoint ";
  const std::string of_folder = evaluate + out("classes") + " --data ";
  const Outcome same = run(command(1, of_folder + named));
  ASSERT_EQ(same.status, 0) << same.text;
  EXPECT_TRUE(same.ours().empty()) << same.text;
  const Outcome mapped = run(command(2, of_folder + turned));
  expect_line(mapped, 0, turned + ": its classes have another order than those of ");
  EXPECT_NEAR(test_loss(mapped), test_loss(same), 1e-9);
  const std::string file = out("classes/checkpoint/step-00000024.h5");
  const Outcome of_weights =
      run(command(1, "evaluate --json --threads 1 --model linear --init " + file + " --data " + turned));
  expect_line(of_weights, 0, file + ": ");
  EXPECT_NE(of_weights.text.find("the file's classes have another order"), std::string::npos);
  EXPECT_NEAR(test_loss(of_weights), test_loss(same), 1e-9);
  expect_line(run(command(2, of_folder + strange)), 1,
              strange + ": found class 'zebra', expected 'hhhhh' as in ");

  expect_line(run(command(2, flags + strange + " --epochs 3 --resume")), 1,
              strange + ": found class 'zebra'");
  expect_line(run(command(1, flags + turned + " --epochs 3 --resume")), 0,
              turned + ": its classes have another order");
  const double of_run = lines("classes").back()["test_loss"];
  EXPECT_NEAR(
      test_loss(run(command(1, evaluate + out("classes/checkpoint/step-00000036.h5") + " --data " + named))),
      of_run, 1e-9);

  // This file has the same images and class names, but other labels. A run must not resume with it.
  const std::string labels = out("other_labels.h5");
  fs::copy_file(named, labels);
  renumber_labels(labels, "train", {1, 0, 2, 3, 4, 5, 6, 7, 8, 9});
  const Outcome relabelled = run(command(1, flags + labels + " --epochs 4 --resume"));
  expect_line(relabelled, 1, labels + ": not the images that ");
  EXPECT_NE(relabelled.text.find(": found other labels"), std::string::npos) << relabelled.text;
}

TEST_F(TrainSafety, AFolderThatHoldsARunIsLeftAlone) {
  ASSERT_EQ(run(command(1, train("held", "--steps 4", "lenet"))).status, 0);
  const std::string results = summary("held").dump();
  for (const char* kept : {"summary.json", "metrics.jsonl", "checkpoint"}) {
    expect_line(run(command(2, train("held", "--steps 2", "lenet"))), 2,
                "--out " + out("held") + ": found an earlier run's results there, expected --resume");
    if (std::string(kept) == "summary.json") {
      EXPECT_EQ(summary("held").dump(), results);
      EXPECT_EQ(losses("held").size(), 4u);
    }
    fs::remove_all(fs::path(out("held")) / kept);
  }
  // The folder now has only a manifest, as after a run that failed before its first step. A new run
  // may use it.
  EXPECT_EQ(run(command(1, train("held", "--steps 4 --checkpoint-every-steps 1", "lenet"))).status, 0);
  const Outcome replaced = run(command(2, train("held", "--steps 2 --overwrite", "lenet")));
  EXPECT_EQ(replaced.status, 0) << replaced.text;
  EXPECT_EQ(losses("held").size(), 2u);
  std::vector<std::string> checkpoints;
  for (const auto& entry : fs::directory_iterator(fs::path(out("held")) / "checkpoint"))
    checkpoints.push_back(entry.path().filename());
  std::ranges::sort(checkpoints);
  EXPECT_EQ(checkpoints, (std::vector<std::string>{"best.h5", "step-00000002.h5"}));
}

TEST_F(TrainSafety, ALongerRunSaysThatItsRateJumps) {
  const std::string cosine = "--schedule cosine --learning-rate 0.05 --eval-every 0 ";
  ASSERT_EQ(run(command(1, train("cosine", cosine + "--epochs 1", "lenet"))).status, 0);
  // An epoch has 12 steps. So the first run ended at the rate 0.05 (1 + cos(11 pi / 12)) / 2. In
  // the longer run the 13th of 24 steps has the rate 0.05 / 2.
  expect_line(run(command(2, train("cosine", cosine + "--steps 24 --resume", "lenet"))), 0,
              "--steps: the run to resume was to have 12 steps, this one 24, and --schedule cosine depends "
              "on that: the "
              "learning rate of the next step is 0.025, that of the last one was 0.000851854");
  ASSERT_EQ(run(command(1, train("level", "--epochs 1", "lenet"))).status, 0);
  const Outcome level = run(command(1, train("level", "--epochs 2 --resume", "lenet")));
  EXPECT_EQ(level.status, 0);
  EXPECT_TRUE(level.ours().empty()) << level.text;
}

}  // namespace
}  // namespace convoy::test
