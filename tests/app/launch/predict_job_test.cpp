// Tests `convoy predict` and `convoy evaluate --report` from the command line. predict_oracle.py
// computes the expected values.
#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/app/launch/train_job.h"

namespace convoy::test {
namespace {

constexpr const char* kPython = "/usr/bin/python3 ";

class PredictJob : public TrainJob {
 protected:
  // Trains lenet for a few steps. Writes its test images as PNG files into one folder per class.
  static void SetUpTestSuite() {
    TrainJob::SetUpTestSuite();
    const Outcome trained = run(command(1, train("run", "--steps 25 --learning-rate 0.02", "lenet")));
    ASSERT_EQ(trained.status, 0) << trained.text;
    if (!has("PIL") || !has("h5py")) return;
    ASSERT_EQ(oracle("images " + data() + " " + out("png")), "");
  }
  void SetUp() override {
    if (!fs::exists(out("png"))) GTEST_SKIP() << "python3-pil or python3-h5py is missing";
  }

  static bool has(const std::string& module) {
    return std::system((std::string(kPython) + "-c 'import " + module + "' 2>/dev/null").c_str()) == 0;
  }
  // Runs predict_oracle.py. Returns the differences that it finds, or an empty text.
  static std::string oracle(const std::string& arguments) {
    const Outcome outcome = run(kPython + std::string(CONVOY_PREDICT_ORACLE) + " " + arguments);
    return outcome.status == 0 ? "" : outcome.text + "?";
  }
  static std::string predict(const std::string& flags) {
    return "predict --checkpoint " + out("run") + " " + flags;
  }
  // Returns the arguments of a prediction that takes minutes.
  static std::string long_prediction(const std::string& name) {
    std::string sources;
    for (int i = 0; i < 400; ++i) sources += " " + out("png");
    return predict("--batch 1 --out " + out(name) + " --data" + sources);
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string table(const std::string& name, int ranks, const std::string& flags) {
    const Outcome outcome = run(
        command(ranks, predict(flags + (flags.find("--threads") == std::string::npos ? " --threads 1" : "") +
                               " --out " + out(name))));
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    return text_of(out(name));
  }
  static std::string top1(const std::string& text) {
    std::smatch found;
    return std::regex_search(text, found, std::regex("top-1 [0-9.]+ %, top-5 [0-9.]+ %")) ? found.str()
                                                                                          : "none";
  }
  static void expect_line(const Outcome& outcome, int status, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.status, status) << outcome.text;
    ASSERT_EQ(outcome.ours().size(), 1u) << outcome.text;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.ours()[0].find(part), std::string::npos) << part << " in " << outcome.text;
  }
  static std::vector<std::string> files_like(const std::string& name) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder()))
      if (entry.path().filename().string().starts_with(name)) found.push_back(entry.path().filename());
    return found;
  }
};

TEST_F(PredictJob, ProbabilitiesAreThoseOfPyTorch) {
  if (!has("torch")) GTEST_SKIP() << "python3-torch is missing";
  table("all.csv", 1, "--data " + data() + " --top 10");
  EXPECT_EQ(oracle("compare " + out("run/checkpoint/best.h5") + " " + data() + " " + out("all.csv")), "");
}

TEST_F(PredictJob, StoreFolderAndRanksGiveTheSame) {
  table("store.csv", 1, "--data " + data() + " --top 10");
  const std::string one = table("one.csv", 1, "--batch 16 --data " + out("png"));
  EXPECT_EQ(std::ranges::count(one, '\n'), 91);
  EXPECT_TRUE(one.starts_with("path,class_1,probability_1,class_2,")) << one.substr(0, 80);
  EXPECT_EQ(oracle("same " + out("store.csv") + " " + out("one.csv")), "");
  EXPECT_EQ(table("two.csv", 2, "--batch 16 --data " + out("png")), one);
  // With two threads, oneDNN adds in another order. The last digits may differ, so the oracle
  // compares the tables with a tolerance.
  table("threads.csv", 1, "--batch 16 --threads 2 --data " + out("png") + " --top 10");
  EXPECT_EQ(oracle("same " + out("store.csv") + " " + out("threads.csv")), "");
  const Outcome to_output =
      run("sh -c '" + command(1, predict("--threads 1 --batch 16 --data " + out("png"))) + " 2>/dev/null'");
  EXPECT_EQ(to_output.text, one);
}

TEST_F(PredictJob, LabelsThatFitGiveTheAccuracy) {
  const std::string expected =
      top1(run(command(1, "evaluate --data " + data() + " --checkpoint " + out("run"))).text);
  EXPECT_NE(expected, "none");
  const auto line = [&](const std::string& flags) {
    return run(command(2, predict(flags + " --out " + out("x.csv")))).text;
  };
  EXPECT_EQ(top1(line("--data " + data())), expected);
  EXPECT_EQ(top1(line("--data " + out("png"))), expected);
  const std::string one_class = fs::directory_iterator(out("png"))->path();
  EXPECT_EQ(top1(line("--data " + one_class)), "none");
  EXPECT_NE(top1(line("--split train --data " + data())), expected);
  // The labels of a store with other classes must not count, but its images must be classified.
  ASSERT_EQ(run(std::string(CONVOY_PROGRAM) + " data synth " + out("other.h5") +
                " --classes 3 --size 32 --train 9 --test 9")
                .status,
            0);
  const std::string other = line("--data " + out("other.h5"));
  EXPECT_EQ(top1(other), "none");
  EXPECT_NE(other.find("other.h5: found 3 classes"), std::string::npos) << other;
  EXPECT_EQ(std::ranges::count(text_of(out("x.csv")), '\n'), 10);
}

TEST_F(PredictJob, FilesThatAreNoImagesAreNamedOrLeftOut) {
  fs::copy(out("png"), out("bad"), fs::copy_options::recursive);
  const std::string good = table("good.csv", 1, "--data " + out("bad"));
  const std::string damaged = out("bad/zz, \"damaged\".png");
  std::ofstream(damaged) << "no image";
  for (const int ranks : {1, 2}) {
    expect_line(
        run(command(ranks, predict("--batch 45 --data " + out("bad") + " --out " + out("never.csv")))), 1,
        {damaged, "neither a JPEG nor a PNG image"});
    EXPECT_TRUE(files_like("never.csv").empty());
    EXPECT_EQ(table("skipped.csv", ranks, "--skip-bad --data " + out("bad")), good);
  }
  const Outcome skipped =
      run(command(2, predict("--skip-bad --data " + out("bad") + " --out " + out("x.csv"))));
  EXPECT_NE(skipped.text.find("90 images by lenet after step"), std::string::npos) << skipped.text;
  EXPECT_NE(skipped.text.find("images that cannot be read: 1"), std::string::npos) << skipped.text;
  EXPECT_NE(skipped.text.find("skipped " + damaged), std::string::npos) << skipped.text;
}

TEST_F(PredictJob, WrongCommandLinesAreRefused) {
  fs::create_directories(out("empty"));
  expect_line(run(command(2, predict("--data " + out("empty")))), 1, {"empty", "holds no images"});
  expect_line(run(command(1, predict("--data " + out("nowhere.png")))), 1, {"nowhere.png", "no such file"});
  expect_line(run(command(1, predict("--split train --data " + out("png")))), 2, {"--split", "png"});
  expect_line(run(command(1, predict("--data " + data() + " " + out("png")))), 2, {"--data", "synth.h5"});
  expect_line(run(command(1, predict("--data " + data() + " --out " + out("empty")))), 1,
              {"empty", "is a folder"});
}

TEST_F(PredictJob, ThereAreAtMostAsManyClassesAsTheNetworkHas) {
  const std::string all = table("all.csv", 1, "--top 10 --data " + data());
  EXPECT_EQ(table("more.csv", 1, "--top 11 --data " + data()), all);
  EXPECT_EQ(table("one.csv", 1, "--top 1 --data " + data()).substr(0, 28), "index,class_1,probability_1\n");
  std::istringstream lines(table("all.jsonl", 2, "--json --top 2 --data " + data()));
  std::string line;
  for (int i = 0; i < 90; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    const json object = json::parse(line);
    EXPECT_EQ(object["index"], i);
    EXPECT_EQ(object["classes"].size(), 2u);
    EXPECT_GE(object["classes"][0]["probability"], object["classes"][1]["probability"]);
  }
}

// Starts a command that writes the file out(name), and waits until it has written a part of it.
pid_t start_until_written(const std::string& line, const std::string& file, const std::string& log) {
  const pid_t job = ::fork();
  if (job == 0) {
    ::signal(SIGINT, SIG_DFL);  // SIGINT is ignored if the tests run in the background
    ::execl("/bin/sh", "sh", "-c", ("exec " + line + " > " + log + " 2>&1").c_str(), nullptr);
    ::_exit(127);
  }
  const auto written = [&] {
    for (const auto& entry : fs::directory_iterator(fs::path(file).parent_path()))
      if (std::error_code error;
          entry.path().string().starts_with(file) && entry.file_size(error) > 0 && !error)
        return true;
    return false;
  };
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!written() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(written()) << line;
  return job;
}

TEST_F(PredictJob, AKilledRankLeavesNoHalfFile) {
  const pid_t job =
      start_until_written(command(2, long_prediction("half.csv")), out("half.csv"), out("half.log"));
  const std::vector<pid_t> ranks = ranks_of("half.csv");
  ASSERT_EQ(ranks.size(), 2u);
  ::kill(std::max(ranks[0], ranks[1]), SIGKILL);  // rank 1, which mpirun starts last
  EXPECT_NE(wait_for(job), 0);
  EXPECT_NE(log("half").find("died (killed or crashed)"), std::string::npos) << log("half");
  EXPECT_TRUE(files_like("half.csv").empty());
}

// Commands other than train and share end by the signal and say so. Of several ranks none speaks,
// because mpirun ends them by SIGTERM after another one has failed.
TEST_F(PredictJob, ASignalLeavesNoHalfFile) {
  // A list with one image under many paths, so that its conversion takes seconds.
  fs::create_directories(out("list/a/b"));
  for (const auto& entry : fs::recursive_directory_iterator(out("png")))
    if (entry.is_regular_file())
      fs::copy_file(entry.path(), out("list/a/b/0.png"), fs::copy_options::overwrite_existing);
  std::ofstream list(out("list/list.csv"));
  list << "path,label\n";
  for (int i = 0; i < 90'000; ++i)
    list << "a" << std::string(1 + i % 300, '/') << "b" << std::string(1 + i / 300, '/') << "0.png," << i % 2
         << "\n";
  list.close();
  const std::string convoy = std::string(CONVOY_PROGRAM) + " ";
  const std::string conversion = convoy + "data convert " + out("list/list.csv") + " " + out("half.x") +
                                 " --test-share 0.5 --encode jpeg:90";
  for (const auto& [signal, name] : {std::pair(SIGTERM, "SIGTERM"), {SIGINT, "SIGINT"}}) {
    for (const std::string& line : {convoy + long_prediction("half.x"), conversion}) {
      const pid_t job = start_until_written(line, out("half.x"), out("half.log"));
      ::kill(job, signal);
      EXPECT_EQ(wait_for(job), -signal) << line;
      EXPECT_TRUE(
          log("half").ends_with(std::string("convoy: ended by ") + name + "; no file is left half written\n"))
          << log("half");
      EXPECT_TRUE(files_like("half.x").empty()) << line;
    }
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const pid_t job =
        start_until_written(command(2, long_prediction("half.y")), out("half.y"), out("half.log"));
    for (const pid_t rank : ranks_of("half.y")) ::kill(rank, signal);
    EXPECT_NE(wait_for(job), 0);
    EXPECT_EQ(log("half").find("convoy: ended by"), std::string::npos) << log("half");
    EXPECT_TRUE(files_like("half.y").empty()) << signal;
  }
  // A script that mpirun starts hands the variable of its rank on to commands that know no ranks.
  const pid_t job =
      start_until_written("env OMPI_COMM_WORLD_SIZE=2 " + conversion, out("half.x"), out("half.log"));
  ::kill(job, SIGTERM);
  EXPECT_EQ(wait_for(job), -SIGTERM);
  EXPECT_TRUE(files_like("half.x").empty());
}

TEST_F(PredictJob, TheReportCountsEveryImage) {
  const auto report = [&](const std::string& name, int ranks) {
    const Outcome outcome = run(command(ranks, "evaluate --threads 1 --data " + data() + " --checkpoint " +
                                                   out("run") + " --report " + out(name)));
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    return outcome.text;
  };
  const std::string one = report("report1", 1);
  EXPECT_EQ(report("report2", 2), one);
  for (const char* file : {"/confusion.csv", "/classes.csv"})
    EXPECT_EQ(text_of(out("report1") + file), text_of(out("report2") + file));
  ASSERT_EQ(run(command(1, "export --checkpoint " + out("run") + " --out " + out("net.onnx"))).status, 0);
  const Outcome file =
      run(command(1, "evaluate --threads 1 --data " + data() + " --model " + out("net.onnx")));
  EXPECT_TRUE(file.text.starts_with(out("net.onnx") + ": 90 test")) << file.text;
  EXPECT_EQ(top1(file.text), top1(one));
  std::istringstream lines(text_of(out("report1/confusion.csv")));
  std::string line, cell;
  std::getline(lines, line);
  int images = 0, correct = 0;
  for (int row = 0; std::getline(lines, line); ++row) {
    std::istringstream cells(line);
    std::getline(cells, cell, ',');
    for (int column = 0; std::getline(cells, cell, ','); ++column) {
      images += std::stoi(cell);
      correct += row == column ? std::stoi(cell) : 0;
    }
  }
  EXPECT_EQ(images, 90);
  std::array<char, 32> percent{};
  std::snprintf(percent.data(), percent.size(), "top-1 %.2f %%", 100.0 * correct / images);
  EXPECT_NE(one.find(percent.data()), std::string::npos) << one << correct;
  if (!has("matplotlib")) GTEST_SKIP() << "python3-matplotlib is missing: no page was drawn";
  const Outcome page = run(CONVOY_REPORT " " + out("report1"));
  EXPECT_EQ(page.status, 0) << page.text;
  EXPECT_NE(text_of(out("report1/report/index.html")).find("of 90 images are named correctly"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::test
