// Tests that runs within a memory limit end with the same parameters as a run without a limit.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "tests/app/launch/train_job.h"

namespace convoy::test {
namespace {

class TrainMemoryJob : public TrainJob {
 protected:
  static std::string limited(const std::string& name, std::int64_t bytes, const std::string& model) {
    return train(name, "--epochs 1 --limit-test 8 --memory-limit " + std::to_string(bytes), model);
  }
  // Returns the number of bytes that a run needs at least, from the message that a limit is too
  // low.
  static std::int64_t least_in(const std::string& text) {
    const std::string before = "at least ";
    const auto at = text.find(before);
    return at == std::string::npos ? 0 : std::stoll(text.substr(at + before.size()));
  }
};

TEST_F(TrainMemoryJob, AnyLimitDownToTheLeastChangesNoBit) {
  for (const auto& [model, ranks] : {std::pair{"wrn10_1", 1}, {"wrn10_1", 2}, {"googlenet", 1}}) {
    ASSERT_EQ(run(command(ranks, train("free", "--epochs 1 --limit-test 8 --overwrite", model))).status, 0);
    const json free = summary("free");
    const auto most = free["peak_device_bytes"].get<std::int64_t>();
    const Outcome refused = run(command(ranks, limited("refused", 1 << 20, model)));
    EXPECT_EQ(refused.status, 1);
    const std::int64_t least = least_in(refused.text);
    ASSERT_GT(least, most / 4) << refused.text;
    ASSERT_LT(least, most * 9 / 10) << refused.text;
    for (const std::int64_t limit : {least, (least + most) / 2}) {
      const Outcome job = run(command(ranks, limited("limited", limit, model) + " --overwrite"));
      ASSERT_EQ(job.status, 0) << job.text;
      EXPECT_NE(job.text.find("kept for backward"), std::string::npos) << job.text;
      EXPECT_NE(job.text.find("_forward"), std::string::npos) << job.text;
      EXPECT_LE(summary("limited")["peak_device_bytes"], limit);
      EXPECT_EQ(summary("limited")["parameters_sha256"], free["parameters_sha256"])
          << model << " on " << ranks << " ranks within " << limit;
    }
  }
}

// Runs that copy activations to host memory and back must end with the bits of a run without a
// limit. The cases have dropout and augmentation, one and two ranks, and a resumed run.
TEST_F(TrainMemoryJob, ActivationsThatWaitInHostMemoryChangeNoBit) {
  for (const auto& [model, ranks] : {std::pair{"googlenet", 1}, {"wrn10_1", 2}}) {
    const std::string common = "--limit-test 8 --flip --crop-padding 4 --overwrite --steps ";
    const std::string host = " --host-memory 1GiB --memory-limit ";
    ASSERT_EQ(run(command(ranks, train("free", common + "4", model))).status, 0);
    const json free = summary("free");
    const auto most = free["peak_device_bytes"].get<std::int64_t>();
    const Outcome refused = run(command(ranks, train("refused", common + "4" + host + "1MiB", model)));
    EXPECT_EQ(refused.status, 1);
    const std::int64_t least = least_in(refused.text);
    ASSERT_GT(least, 0) << refused.text;
    const Outcome job = run(
        command(ranks, train("limited", common + "2" + host + std::to_string((least + most) / 2), model)));
    ASSERT_EQ(job.status, 0) << job.text;
    const std::string rest = "--limit-test 8 --flip --crop-padding 4 --resume --steps 4";
    const Outcome resumed = run(command(ranks, train("limited", rest + host + std::to_string(least), model)));
    ASSERT_EQ(resumed.status, 0) << resumed.text;
    EXPECT_NE(resumed.text.find(" tensors between forward"), std::string::npos) << resumed.text;
    EXPECT_LE(summary("limited")["peak_device_bytes"], least);
    EXPECT_EQ(summary("limited")["parameters_sha256"], free["parameters_sha256"]) << model;
  }
}

// Ranks may have different limits, and a resumed run may have another limit than before. The result
// must not change.
TEST_F(TrainMemoryJob, RanksMayHaveLimitsOfTheirOwnAndAResumedRunAnother) {
  ASSERT_EQ(run(command(2, train("whole", "--epochs 1 --limit-test 8"))).status, 0);
  const auto most = summary("whole")["peak_device_bytes"].get<std::int64_t>();
  const std::string wrapper = out("wrapper.sh");
  std::ofstream(wrapper) << "#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || set -- \"$@\" --memory-limit "
                         << most * 3 / 4 << "\nexec " CONVOY_PROGRAM " \"$@\"\n";
  fs::permissions(wrapper, fs::perms::owner_all);
  const Outcome part = run(std::string(CONVOY_MPIEXEC) + " -np 2 --oversubscribe --bind-to none " + wrapper +
                           " " + train("parts", "--steps 5 --limit-test 8"));
  ASSERT_EQ(part.status, 0) << part.text;
  const Outcome rest = run(command(2, limited("parts", most * 4 / 5, "wrn10_1") + " --resume"));
  ASSERT_EQ(rest.status, 0) << rest.text;
  EXPECT_EQ(summary("parts")["parameters_sha256"], summary("whole")["parameters_sha256"]);
}

TEST_F(TrainMemoryJob, TheBenchmarkRunsEveryMethodForReal) {
  const Outcome job = run(command(1,
                                  "bench memory --model wrn10_1 --size 32 --batch 8 --steps 1 --warmup 1 "
                                  "--threads 1 --host-memory 64MiB --json"));
  ASSERT_EQ(job.status, 0) << job.text;
  std::map<std::string, json> rows;
  std::istringstream lines(job.text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("{")) rows[json::parse(line)["method"]] = json::parse(line);
  const json all = rows.at("everything kept"), least = rows.at("plan within the least");
  EXPECT_EQ(all["recomputed"], 0);
  for (const char* method : {"batch norms again", "checkpoint every block", "plan within 90 %"}) {
    EXPECT_LT(rows.at(method)["bytes"], all["bytes"]) << method;
    EXPECT_GE(rows.at(method)["bytes"], least["bytes"]) << method;
    EXPECT_GT(rows.at(method)["recomputed"], 0) << method;
    EXPECT_GT(rows.at(method)["images_per_second"], 0) << method;
  }
  EXPECT_LE(rows.at("plan within 90 %")["share"], 0.9);
  for (const char* method :
       {"vDNN, all, ahead", "vDNN, all, on demand", "vDNN, inputs of convolutions, ahead",
        "vDNN, inputs of convolutions, on demand"}) {
    EXPECT_LT(rows.at(method)["bytes"], all["bytes"]) << method;
    EXPECT_GT(rows.at(method)["host_bytes"], 0) << method;
    EXPECT_EQ(rows.at(method)["recomputed"], 0) << method;
    EXPECT_GT(rows.at(method)["images_per_second"], 0) << method;
  }
  EXPECT_GE(rows.at("vDNN, all, ahead")["bytes"], rows.at("vDNN, all, on demand")["bytes"]);
  EXPECT_EQ(run(command(2, "bench memory --model lenet --size 32 --batch 2")).status, 2);
}

}  // namespace
}  // namespace convoy::test
