// Tests `convoy share`, which runs several jobs in one process. Every job must end with the bits of
// a run alone, and a job that fails must end no other job.
#include <algorithm>

#include "tests/app/launch/train_job.h"

namespace convoy::test {
namespace {

class ShareJob : public TrainJob {
 protected:
  struct Training {
    std::string name, model, flags;  // flags as TOML lines
  };
  static std::vector<Training> trainings() {
    return {{"wide", "wrn10_1", "ema = 0.9\nflip = true\ncrop-padding = 4\naccumulate = 3\n"},
            {"plain", "lenet", "drop-path = -1\nseed = 4\n"},
            {"again", "wrn10_1", "seed = 2\nlearning-rate = 0.02\nclip-gradient-norm = 0.5\n"}};
  }
  // Returns a [[job]] table of a training on the test data.
  static std::string table(const Training& one, const std::string& more = "steps = 8\n") {
    return "[[job]]\nname = \"" + one.name + "\"\nmodel = \"" + one.model + "\"\ndata = \"" + data() +
           "\"\nglobal-batch = 51\nthreads = 1\nlog-every = 1\n" + one.flags + more;
  }
  static std::string service(const std::string& keys) {
    return "[[job]]\nkind = \"predict\"\ncheckpoint = \"x\"\n" + keys;
  }
  static std::string file(const std::string& name, const std::string& text) {
    const std::string path = out(name + ".toml");
    std::ofstream(path) << text;
    return path;
  }
  static std::string share(const std::string& jobs, const std::string& name, const std::string& flags = "") {
    return std::string(CONVOY_PROGRAM) + " share " + jobs + " --out " + out(name) + " " + flags;
  }
  // Starts the jobs of the file, and waits until `job` has logged `step` steps.
  static pid_t start_share(const std::string& jobs, const std::string& name, const std::string& job,
                           std::size_t step) {
    fs::create_directories(out(name + "/" + job));
    return start_until(share(jobs, name), name + "/" + job, step);
  }
  static json report(const std::string& name) {
    return json::parse(std::ifstream(fs::path(out(name)) / "share.json"));
  }
  static json job(const std::string& name, const std::string& job) {
    const json all = report(name)["jobs"];
    return *std::find_if(all.begin(), all.end(), [&](const json& one) { return one["name"] == job; });
  }
  // Returns the SHA-256 of the parameters of a run alone. All tests use the same run.
  static std::string alone(const Training& one) {
    const std::string name = "alone-" + one.name;
    if (!fs::exists(fs::path(out(name)) / "summary.json")) {
      const std::string config = file(name, table(one).substr(table(one).find("model")));
      const Outcome run_alone =
          run(std::string(CONVOY_PROGRAM) + " train --config " + config + " --out " + out(name));
      EXPECT_EQ(run_alone.status, 0) << run_alone.text;
    }
    return sha(name);
  }
  static std::string all_tables(const std::string& more = "steps = 8\n") {
    std::string text;
    for (const Training& one : trainings()) text += table(one, more);
    return text;
  }
};

TEST_F(ShareJob, EveryJobHasTheBitsOfARunAlone) {
  const std::string jobs = file("three", all_tables());
  for (const std::string flags : {"--policy together", "--policy turns", "--policy auto --memory-limit 36MiB",
                                  "--memory-limit 36MiB --no-prefetch"}) {
    const Outcome outcome = run(share(jobs, "three", flags));
    ASSERT_EQ(outcome.status, 0) << flags << "\n" << outcome.text;
    for (const Training& one : trainings()) {
      EXPECT_EQ(sha("three/" + one.name), alone(one)) << one.name << " with " << flags;
      EXPECT_EQ(job("three", one.name)["steps"], one.name == "wide" ? 3 * 8 : 8) << "wide counts parts";
      EXPECT_EQ(losses("three/" + one.name), losses("alone-" + one.name));
    }
    std::int64_t swapped = 0;
    const json all = report("three")["jobs"];
    for (const json& one : all) swapped += one["swapped_bytes"].get<std::int64_t>();
    EXPECT_EQ(swapped > 0, flags.find("limit") != std::string::npos) << flags << "\n" << all;
    fs::remove_all(out("three"));
  }
}

// A missing file, a loss that is not finite, a folder in use and too little memory: each must end
// only its own job.
TEST_F(ShareJob, AFailureEndsOneJob) {
  const Training good = trainings()[1];
  std::string text = table(good);
  text += "[[job]]\nname = \"lost\"\nmodel = \"lenet\"\ndata = \"" + out("nothing.h5") +
          "\"\nglobal-batch = 51\nsteps = 3\n";
  text += table({"diverges", "lenet", "learning-rate = 1e30\nstop-on-divergence = true\n"});
  text +=
      "[[job]]\nname = \"large\"\nmodel = \"resnet18\"\ndata = \"synthetic\"\nglobal-batch = 64\nsteps = 3\n";
  const Outcome outcome = run(share(file("failing", text), "failing", "--memory-limit 60MiB"));
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_EQ(sha("failing/plain"), alone(good));
  EXPECT_EQ(job("failing", "plain")["status"], "finished");
  for (const auto& [name, reason] : {std::pair{"lost", "nothing.h5"}, std::pair{"diverges", "loss of nan"},
                                     std::pair{"large", "device memory"}}) {
    EXPECT_EQ(job("failing", name)["status"], "failed");
    EXPECT_NE(std::string(job("failing", name)["message"]).find(reason), std::string::npos)
        << job("failing", name);
    const auto lines = outcome.ours();
    EXPECT_EQ(std::ranges::count_if(lines,
                                    [&](const std::string& line) {
                                      return line.find(std::string("job ") + name + ": ") !=
                                             std::string::npos;
                                    }),
              1)
        << outcome.text;
  }
}

TEST_F(ShareJob, StopsAllJobsAtASignalAndResumesThem) {
  const pid_t pid = start_share(file("long", all_tables("steps = 8\n")), "stopped", "again", 2);
  ::kill(pid, SIGTERM);
  EXPECT_EQ(wait_for(pid), 75) << log("stopped/again");
  const Outcome rest = run(share(file("rest", all_tables("steps = 8\nresume = true\n")), "stopped"));
  EXPECT_EQ(rest.status, 0) << rest.text;
  for (const Training& one : trainings()) EXPECT_EQ(sha("stopped/" + one.name), alone(one)) << one.name;
}

// A killed process must lose only the steps that its jobs have done since their checkpoints.
TEST_F(ShareJob, GoesOnFromCheckpointsAfterItWasKilled) {
  const pid_t pid = start_share(file("killed", all_tables("steps = 8\ncheckpoint-every-steps = 2\n")),
                                "killed", "again", 3);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(wait_for(pid), -SIGKILL);
  const Outcome rest = run(share(file("rest", all_tables("steps = 8\nresume = true\n")), "killed"));
  EXPECT_EQ(rest.status, 0) << rest.text;
  for (const Training& one : trainings()) EXPECT_EQ(sha("killed/" + one.name), alone(one)) << one.name;
}

TEST_F(ShareJob, TakesAndDropsJobsWhileItRuns) {
  const Training endless{"endless", "lenet", ""};
  const pid_t pid = start_share(file("first", table(endless, "steps = 1000000\n")), "open", "endless", 2);
  const Training late = trainings()[1];
  EXPECT_EQ(run(share("", "open", "--add " + file("late", table(late)))).status, 0);
  const Outcome wrong = run(share("", "open", "--add " + file("wrong", table(late, "stepz = 8\n"))));
  EXPECT_EQ(wrong.status, 2) << wrong.text;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(fs::path(out("open/plain")) / "summary.json") &&
         std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(sha("open/plain"), alone(late));
  EXPECT_EQ(run(share("", "open", "--remove endless")).status, 0);
  EXPECT_EQ(wait_for(pid), 0) << log("open/endless");
  EXPECT_EQ(job("open", "endless")["status"], "stopped");
  EXPECT_EQ(run(share("", "open", "--remove endless")).status, 2) << "nobody runs there now";
}

// A running `convoy share` must obey orders even while it measures steps, which takes seconds here.
// The order removes the job `other`. So the prediction that is printed after the measurement must
// not name it.
TEST_F(ShareJob, ObeysOrdersWhileItMeasures) {
  const Training slow{"slow", "wrn10_1", ""}, other{"other", "wrn10_1", "seed = 2\n"};
  fs::create_directories(out("measures/other"));
  const pid_t pid = start_until(
      share(file("measures", table(slow, "steps = 12\n") + table(other, "steps = 1000000\n")), "measures"),
      "measures/other", 1);
  EXPECT_EQ(run(share("", "measures", "--remove other")).status, 0);
  EXPECT_EQ(wait_for(pid), 0) << log("measures/other");
  const std::string text = log("measures/other");
  EXPECT_NE(text.find("job other stopped"), std::string::npos) << text;
  EXPECT_EQ(text.find("then other"), std::string::npos) << text;
  EXPECT_EQ(text.find("+ other"), std::string::npos) << text;
}

TEST_F(ShareJob, EvaluatesACheckpointNextToATraining) {
  const Training one = trainings()[1];
  alone(one);
  const std::string evaluation = "[[job]]\nname = \"test\"\nkind = \"evaluate\"\ncheckpoint = \"" +
                                 out("alone-plain") + "\"\ndata = \"" + data() +
                                 "\"\nglobal-batch = 30\nthreads = 1\n";
  const Outcome outcome = run(share(file("mixed", table(one) + evaluation), "mixed"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(sha("mixed/plain"), alone(one));
  const Outcome expected = run(std::string(CONVOY_PROGRAM) + " evaluate --checkpoint " + out("alone-plain") +
                               " --data " + data() + " --global-batch 30 --threads 1 --json");
  EXPECT_EQ(json::parse(std::ifstream(fs::path(out("mixed/test")) / "evaluation.json")),
            json::parse(expected.text));
}

TEST_F(ShareJob, NamesWhatIsWrongWithTheJobs) {
  const std::string good = table(trainings()[0]);
  for (const auto& [text, expected] :
       {std::pair<std::string, std::string>{"", "[[job]]"},
        {good + good, "name twice"},
        {table({"a/b", "lenet", ""}), "letters"},
        {table({"a", "lenet", "out = \"x\"\n"}), "out"},
        {table({"a", "lenet", "kind = \"dance\"\n"}), "kind"},
        {table({"a", "lenet", "partition = 2\n"}), "partition"},
        {table({"a", "lenet", "priority = 1.5\n"}), "priority"},
        {good + table({"b", "lenet", "tuning-file = \"x.json\"\n"}), "tuning-file"},
        {service("multiprocessors = 8\n"), "multiprocessors: found 8"},
        {service("backend = \"cuda\"\nmultiprocessors = 8\n") +
             service("name = \"b\"\nbackend = \"cuda\"\nmultiprocessors = 16\n"),
         "expected 8"},
        {table({"a", "lenet", "multiprocessors = 8\n"}), "multiprocessors"},
        {"[[job]]\nkind = \"evaluate\"\ndata = \"x\"\n", "--checkpoint"}}) {
    const Outcome outcome = run(share(file("wrong", text), "wrong"));
    EXPECT_EQ(outcome.status, 2) << text << outcome.text;
    ASSERT_EQ(outcome.ours().size(), 1u) << outcome.text;
    EXPECT_NE(outcome.text.find(expected), std::string::npos) << outcome.text;
  }
  const Outcome ranks = run(command(2, "share " + file("ranks", good) + " --out " + out("ranks")));
  EXPECT_NE(ranks.status, 0);
  EXPECT_NE(ranks.text.find("expected one"), std::string::npos) << ranks.text;
}

}  // namespace
}  // namespace convoy::test
