// Tests that the prediction service gives the same results as `convoy predict`, both for images
// that jobs/predict_client.py sends to its socket and for images in a folder that it watches.
#include <sys/stat.h>

#include <atomic>
#include <map>
#include <set>
#include <sstream>

#include "app/errors.h"
#include "app/sharing/service/prediction_service.h"
#include "data/convert/csv.h"
#include "tests/app/launch/train_job.h"
#include "tests/data/support.h"

namespace convoy::app {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::Outcome;
namespace fs = std::filesystem;

constexpr int kImages = 21;
constexpr std::int64_t kBatch = 8;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PredictionServiceJob : public test::TrainJob {
 protected:
  // Trains lenet for a few steps, and lets `convoy predict` name the classes of some images.
  static void SetUpTestSuite() {
    TrainJob::SetUpTestSuite();
    const Outcome trained = run(command(1, train("run", "--steps 25 --learning-rate 0.02", "lenet")));
    ASSERT_EQ(trained.status, 0) << trained.text;
    for (int i = 0; i < kImages; ++i) {
      const data::Image picture = data::testing::smooth_image(30 + 5 * i, 120 - 4 * i, 3, i);
      const std::string name = std::to_string(i) + (i % 2 == 0 ? ".png" : ".jpg");
      data::testing::write_bytes(out("images/" + name), i % 2 == 0 ? data::testing::encode_png(picture)
                                                                   : data::testing::encode_jpeg(picture));
    }
    const Outcome predicted =
        run(command(1, "predict --checkpoint " + out("run") + " --data " + out("images") + " --batch " +
                           std::to_string(kBatch) + " --threads 1 --top 10 --out " + out("predict.csv")));
    ASSERT_EQ(predicted.status, 0) << predicted.text;
  }
  void SetUp() override {
    fs::remove_all(out("job"));
    fs::create_directories(out("job"));
  }
  void TearDown() override { stop(); }

  static ServiceOptions options() {
    ServiceOptions options;
    options.checkpoint = out("run");
    options.batch = kBatch;
    options.threads = 1;
    options.top = 10;
    options.out = out("job");
    return options;
  }
  void start(const ServiceOptions& options,
             const PredictionService::MakeSession& make = PredictionService::make_session) {
    stopping_ = false;
    service_ = std::make_unique<PredictionService>(options, make);
    thread_ = std::thread([this] {
      try {
        service_->run([this] { return stopping_.load(); });
      } catch (const std::exception& error) {
        failure_ = error.what();
      }
    });
    ASSERT_TRUE(wait_until([&] { return options.socket.empty() || fs::exists(options.socket); }));
  }
  void start_socket() {
    ServiceOptions with_socket = options();
    with_socket.socket = socket();
    with_socket.latency_goal_ms = 10'000;
    start(with_socket);
  }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    service_.reset();
    EXPECT_EQ(failure_, "");
  }
  static std::string socket() { return out("job/socket"); }
  template <typename Condition>
  static bool wait_until(const Condition& condition) {
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (!condition() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(5ms);
    return condition();
  }
  static json report() { return json::parse(text_of(out("job/service.json"))); }
  // Returns the lines that the client prints. The last one is its summary.
  static std::vector<json> client(const std::string& arguments, int status = 0) {
    const Outcome outcome = run("/usr/bin/python3 " CONVOY_PREDICT_CLIENT " " + socket() + " " + arguments);
    EXPECT_EQ(outcome.status, status) << outcome.text;
    std::vector<json> lines;
    std::istringstream stream(outcome.text);
    for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line, nullptr, false));
    return lines;
  }
  static std::vector<std::string> images() {
    std::vector<std::string> list;
    for (const auto& entry : fs::directory_iterator(out("images"))) list.push_back(entry.path());
    std::ranges::sort(list);
    return list;
  }
  static std::string joined(const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& one : list) text += " " + one;
    return text;
  }
  // Returns the fields of the table of `convoy predict` by path.
  static std::map<std::string, std::vector<std::string>> expected() {
    const std::string table = text_of(out("predict.csv"));
    data::CsvReader reader(table);
    std::map<std::string, std::vector<std::string>> rows;
    for (std::vector<std::string> fields; reader.next(fields);) rows[fields[0]] = fields;
    return rows;
  }
  static std::string error_of(const json& reply) { return reply.value("error", ""); }
  static void expect_same(const json& reply, const std::string& path) {
    const std::vector<std::string> fields = expected().at(path);
    ASSERT_TRUE(reply.contains("classes")) << reply;
    ASSERT_EQ(reply["classes"].size(), 10u) << reply;
    for (std::size_t k = 0; k < 10; ++k) {
      EXPECT_EQ(reply["classes"][k], fields[1 + 2 * k]) << path;
      EXPECT_EQ(reply["probabilities"][k].get<float>(), std::stof(fields[2 + 2 * k])) << path;
    }
  }

  std::unique_ptr<PredictionService> service_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;
  std::string failure_;
};

TEST_F(PredictionServiceJob, AFolderGetsTheLinesOfPredict) {
  ServiceOptions watching = options();
  watching.watch = out("images");
  start(watching);
  const auto lines_of = [](const std::string& name) {
    std::istringstream stream(text_of(out(name)));
    std::multiset<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.insert(line);
    return lines;
  };
  ASSERT_TRUE(wait_until([&] { return lines_of("job/predictions.csv").size() == kImages + 1; }));
  stop();
  EXPECT_EQ(lines_of("job/predictions.csv"), lines_of("predict.csv"));
  EXPECT_EQ(report()["folder"],
            (json{{"predicted", kImages}, {"damaged", 0}, {"left_out", 0}, {"waiting", 0}}));
  EXPECT_LT(report()["steps"], kImages);  // a step takes several images
}

TEST_F(PredictionServiceJob, ASocketGivesTheProbabilitiesOfPredict) {
  start_socket();
  EXPECT_TRUE(service_->describe().starts_with("lenet after step 2")) << service_->describe();
  for (const char* flags : {"", " --bytes"}) {
    const std::vector<json> replies = client(joined(images()) + flags);
    ASSERT_EQ(replies.size(), kImages + 1u);
    for (std::size_t i = 0; i < kImages; ++i) expect_same(replies[i], images()[i]);
    EXPECT_EQ(replies.back()["answered"], kImages);
  }
  EXPECT_EQ(client(images()[0] + " --top 2")[0]["classes"].size(), 2u);
  EXPECT_EQ(client(images()[0] + " --top 99")[0]["classes"].size(), 10u);
}

// `convoy share` runs the service next to a training. Neither changes the other's bits, and the
// service ends when the training is done.
TEST_F(PredictionServiceJob, RunsNextToATrainingInOneProcess) {
  const std::string training = "model = \"lenet\"\ndata = \"" + data() +
                               "\"\nglobal-batch = 51\nthreads = 1\nseed = 3\nsteps = 300\nlimit-test = 30\n";
  std::ofstream(out("train.toml")) << training;
  const Outcome alone =
      run(std::string(CONVOY_PROGRAM) + " train --config " + out("train.toml") + " --out " + out("alone"));
  ASSERT_EQ(alone.status, 0) << alone.text;
  std::ofstream(out("jobs.toml")) << "[[job]]\nname = \"training\"\n"
                                  << training << "[[job]]\nname = \"service\"\n"
                                  << "kind = \"predict\"\nbatch = 8\nthreads = 1\ntop = 10\ncheckpoint = \""
                                  << out("run") << "\"\nsocket = \"" << socket() << "\"\n";
  Outcome shared;
  std::thread process([&] {
    shared = run(std::string(CONVOY_PROGRAM) + " share " + out("jobs.toml") + " --out " + out("both"));
  });
  if (wait_until([] { return fs::exists(socket()); })) {
    const std::vector<json> replies = client(joined(images()));
    EXPECT_EQ(replies.size(), kImages + 1u);
    for (std::size_t i = 0; i + 1 < replies.size(); ++i) expect_same(replies[i], images()[i]);
  } else {
    ADD_FAILURE() << "the service has not opened its socket";
  }
  process.join();
  EXPECT_EQ(shared.status, 0) << shared.text;
  EXPECT_EQ(sha("both/training"), sha("alone"));
  EXPECT_EQ(json::parse(text_of(out("both/service/service.json")))["requests"]["predicted"], kImages);
}

TEST_F(PredictionServiceJob, ADamagedImageHarmsNoOther) {
  start_socket();
  const std::string cut = out("job/cut.png"), pipe = out("job/pipe.png"), gif = out("job/gif.png");
  std::ofstream(cut, std::ios::binary) << text_of(images()[0]).substr(0, fs::file_size(images()[0]) / 2);
  std::ofstream(gif, std::ios::binary) << "GIF89a";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string good = images()[0];
  const std::vector<json> replies =
      client(joined({good, cut, good, gif, pipe, out("job/none.png"), out("job"), good}), 1);
  ASSERT_EQ(replies.size(), 9u);
  for (const int i : {0, 2, 7}) expect_same(replies[i], good);
  EXPECT_TRUE(error_of(replies[1]).starts_with(cut + ": bad PNG")) << replies[1];
  EXPECT_EQ(error_of(replies[3]), gif + ": neither a JPEG nor a PNG image");
  EXPECT_EQ(error_of(replies[4]), pipe + ": is no file");
  EXPECT_EQ(error_of(replies[5]), out("job/none.png") + ": No such file or directory");
  EXPECT_EQ(error_of(replies[6]), out("job") + ": is no file");
  EXPECT_EQ(error_of(client(gif + " --bytes", 1)[0]), "bytes: neither a JPEG nor a PNG image");
  EXPECT_EQ(client(cut, 1).back()["errors"], 1);
  stop();
  EXPECT_EQ(report()["requests"], (json{{"predicted", 3}, {"refused", 7}}));
}

TEST_F(PredictionServiceJob, ALoadIsAnsweredAndItsLatenciesAreReported) {
  start_socket();
  const json seen = client(joined(images()) + " --rate 300 --seconds 1.5 --poisson --seed 5").back();
  EXPECT_GT(seen["requests"], 300);
  EXPECT_EQ(seen["answered"], seen["requests"]);
  // While it runs, the service writes its report every second.
  ASSERT_TRUE(wait_until([&] { return report()["requests"]["predicted"] == seen["requests"]; }));
  stop();
  for (const json& latency : {seen["latency_ms"], report()["latency_ms"]}) {
    EXPECT_GT(latency["p50"], 0);
    EXPECT_LE(latency["p50"], latency["p95"]);
    EXPECT_LE(latency["p95"], latency["p99"]);
    EXPECT_LE(latency["p99"], latency["max"].get<double>() + 1e-9);
  }
  EXPECT_LE(report()["latency_ms"]["max"], seen["latency_ms"]["max"].get<double>() + 1);
  EXPECT_EQ(report()["latency_goal_ms"], 10'000);
  EXPECT_EQ(report()["over_goal"], 0);
}

TEST_F(PredictionServiceJob, SocketAndFolderAreServedTogether) {
  ServiceOptions both = options();
  both.socket = socket();
  both.watch = out("images");
  start(both);
  const std::vector<json> replies = client(joined(images()));
  for (std::size_t i = 0; i < kImages; ++i) expect_same(replies[i], images()[i]);
  ASSERT_TRUE(wait_until([&] { return report()["folder"]["predicted"] == kImages; }));
}

TEST_F(PredictionServiceJob, TheSessionIsMadeByTheCaller) {
  ServiceOptions with_socket = options();
  with_socket.socket = socket();
  int made = 0;
  start(with_socket, [&](const Network& network, const StepOptions& step, const RankGroups& rank) {
    ++made;
    EXPECT_TRUE(step.keep_probabilities && !step.training);
    return PredictionService::make_session(network, step, rank);
  });
  EXPECT_EQ(made, 1);
}

TEST_F(PredictionServiceJob, WhatCannotBeServedIsNamed) {
  const auto error_of = [&](const ServiceOptions& wrong) -> std::string {
    try {
      PredictionService(wrong).run([] { return true; });
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of(options()),
            "a prediction service has neither socket nor watch, expected at least one of them");
  ServiceOptions wrong = options();
  wrong.socket = out("images/0.png");
  EXPECT_EQ(error_of(wrong), out("images/0.png") + ": is no socket, expected a name that is free");
  wrong.socket = socket();
  wrong.watch = out("nowhere");
  EXPECT_EQ(error_of(wrong), out("nowhere") + ": cannot watch the folder: No such file or directory");
  wrong.checkpoint = out("images");
  EXPECT_NE(error_of(wrong).find(out("images")), std::string::npos) << error_of(wrong);
}

}  // namespace
}  // namespace convoy::app
