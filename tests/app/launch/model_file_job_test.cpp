// Tests jobs whose network is an ONNX file: training, the same bits on any number of ranks, and a
// file that changes between runs.
#include <algorithm>
#include <array>

#include "app/model/weights/safetensors.h"
#include "tests/app/launch/train_job.h"
#include "tests/app/model/import/model_maker.h"

namespace convoy::test {
namespace {

using app::onnx_import::ModelMaker;

class ModelFileJob : public TrainJob {
 protected:
  // Writes a small network with batch norm and returns the file's name.
  static std::string write(const std::string& name, std::int64_t stride = 1) {
    ModelMaker maker({-1, 3, 32, 32});
    const std::string weight = maker.weight("bn.weight", {8}), bias = maker.weight("bn.bias", {8});
    return write(name, maker, maker.weight("conv.weight", {8, 3, 3, 3}), weight, bias, stride);
  }
  static std::string write(const std::string& name, ModelMaker& maker, const std::string& kernel,
                           const std::string& weight, const std::string& bias, std::int64_t stride = 1) {
    maker.node("Conv", {"x", kernel}, "c",
               {.lists = {{"pads", {1, 1, 1, 1}}, {"strides", {stride, stride}}}});
    maker.node(
        "BatchNormalization",
        {"c", weight, bias, maker.weight("bn.running_mean", {8}), maker.filled("bn.running_var", {8}, 1)},
        "b");
    maker.node("Relu", {"b"}, "r");
    maker.classify("r", 8);  // three classes
    const std::string path = (folder() / name).string();
    std::ofstream(path, std::ios::binary) << maker.model().SerializeAsString();
    return path;
  }
  // Makes a data set of the three classes of these networks.
  static std::string three_classes() {
    const std::string three = (folder() / "three.h5").string();
    if (!fs::exists(three)) {
      const Outcome made = run(std::string(CONVOY_PROGRAM) + " data synth " + three +
                               " --classes 3 --size 32 --train 30 --test 30");
      EXPECT_EQ(made.status, 0) << made.text;
    }
    return three;
  }
  static void expect_one_line(const Outcome& outcome, int status, const std::string& part) {
    EXPECT_EQ(outcome.status, status) << outcome.text;
    ASSERT_EQ(outcome.ours().size(), 1u) << outcome.text;
    EXPECT_NE(outcome.ours()[0].find(part), std::string::npos) << outcome.text;
  }
};

TEST_F(ModelFileJob, TrainsToTheSameBitsWholeSplitAndResumed) {
  const std::string file = write("a.onnx");
  const Outcome whole = run(command(1, train("whole", "--steps 6", file)));
  ASSERT_EQ(whole.status, 0) << whole.text;
  EXPECT_NE(whole.text.find("layer fc is drawn anew unless --init has it: it had 3 classes, now 10"),
            std::string::npos)
      << whole.text;
  ASSERT_EQ(run(command(2, train("split", "--steps 6 --partition 2", file))).status, 0);
  EXPECT_EQ(sha("split"), sha("whole"));
  ASSERT_EQ(run(command(1, train("part", "--steps 3 --checkpoint-every-steps 3", file))).status, 0);
  ASSERT_EQ(run(command(1, train("part", "--steps 6 --checkpoint-every-steps 3 --resume", file))).status, 0);
  EXPECT_EQ(sha("part"), sha("whole"));
  const Outcome evaluated = run(command(1, "evaluate --checkpoint " + out("whole") + " --data " + data()));
  EXPECT_EQ(evaluated.status, 0) << evaluated.text;
}

TEST_F(ModelFileJob, RefusesAFileThatHasChangedAndNamesIt) {
  const std::string file = write("b.onnx");
  ASSERT_EQ(run(command(1, train("changed", "--steps 2", file))).status, 0);
  write("b.onnx", 2);
  for (const std::string& verb : {train("changed", "--steps 4 --resume", file),
                                  "evaluate --checkpoint " + out("changed") + " --data " + data()}) {
    const Outcome refused = run(command(1, verb));
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.text.find(file + ": not the network that "), std::string::npos) << refused.text;
  }
}

// The file has a batch norm with affine=False. Files of weights must not hold its constants.
TEST_F(ModelFileJob, GivesANormWithoutParametersNoneInItsFiles) {
  ModelMaker maker({-1, 3, 32, 32});
  const std::string ones = maker.constant("ones", {8}, 1), zeros = maker.constant("zeros", {8}, 0);
  const std::string file =
      write("constants.onnx", maker, maker.weight("conv.weight", {8, 3, 3, 3}), ones, zeros);
  const Outcome trained = run(command(1, train("constants", "--steps 3", file)));
  ASSERT_EQ(trained.status, 0) << trained.text;
  EXPECT_NE(trained.text.find("parameters       306\n"), std::string::npos) << trained.text;
  ASSERT_EQ(run(command(2, train("constants2", "--steps 3 --partition 2", file))).status, 0);
  EXPECT_EQ(sha("constants2"), sha("constants"));
  const auto exported = [&](const std::string& name) {
    const Outcome written =
        run(std::string(CONVOY_PROGRAM) + " export --checkpoint " + out("constants") + " --out " + out(name));
    EXPECT_EQ(written.status, 0) << written.text;
    return out(name);
  };
  const std::string weights = exported("constants.safetensors"), network = exported("constants2.onnx");
  std::vector<std::string> names;
  const app::SafetensorsFile stored(weights);
  for (const app::FileTensor& tensor : stored.tensors()) names.push_back(tensor.name);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"bn.num_batches_tracked", "bn.running_mean", "bn.running_var",
                                             "conv.weight", "fc.bias", "fc.weight"}));
  const std::string still = "--steps 1 --learning-rate 1e-30 --momentum 0 --freeze-batch-norm ";
  for (const auto& [name, model, flags] : {std::array<std::string, 3>{"taken", file, "--init " + weights},
                                           {"taken2", file, "--init " + out("constants/checkpoint/best.h5")},
                                           {"taken3", network, ""}}) {
    const Outcome taken = run(command(1, train(name, still + flags, model)));
    EXPECT_EQ(taken.status, 0) << taken.text;
    EXPECT_EQ(taken.text.find("not used"), std::string::npos) << taken.text;
    EXPECT_EQ(sha(name), sha("constants")) << name;
  }
}

TEST_F(ModelFileJob, FailsIfResultsAreNotFinite) {
  ModelMaker maker({-1, 3, 32, 32});
  const std::string weight = maker.weight("bn.weight", {8}), bias = maker.weight("bn.bias", {8});
  const std::string file =
      write("huge.onnx", maker, maker.filled("conv.weight", {8, 3, 3, 3}, 3e38f), weight, bias);
  const std::string flags = " --threads 1 --model " + file + " --data " + three_classes();
  for (const int ranks : {1, 2}) {
    expect_one_line(run(command(ranks, "evaluate" + flags)), 1,
                    file + ": the loss over 30 test images is not finite");
    expect_one_line(run(command(ranks, "evaluate --report " + out("report") + flags)), 1, "the loss over 30");
    EXPECT_FALSE(fs::exists(out("report")));
    expect_one_line(run(command(ranks, "predict --out " + out("huge.csv") + flags)), 1,
                    file + ": the probabilities of image 0 are not finite");
    EXPECT_FALSE(fs::exists(out("huge.csv")));
  }
}

// The file's network is for another number of classes, which a run says before its first step.
TEST_F(ModelFileJob, FindsWrongFlagsBeforeItSaysAnything) {
  const std::string file = write("e.onnx");
  expect_one_line(run(command(1, train("wrong", "--steps 1 --loss-weights 1,2,3", file))), 2,
                  "--loss-weights: ");
  expect_one_line(run(command(1, train("wrong", "--steps 1 --init weights.txt", file))), 2, "--init: ");
  expect_one_line(run(command(2, train("wrong", "--steps 1 --freeze '*'", file))), 2, "--freeze: ");
  expect_one_line(run(command(1, train("wrong", "--steps 1 --reinitialise --init none.safetensors", file))),
                  1, "none.safetensors: ");
}

TEST_F(ModelFileJob, DrawsNewValuesFromTheSeedIfAskedTo) {
  const std::string file = write("c.onnx");
  const auto sha_of = [&](const std::string& name, const std::string& flags) {
    const Outcome trained = run(command(1, train(name, "--steps 1 --learning-rate 1e-9 " + flags, file)));
    EXPECT_EQ(trained.status, 0) << trained.text;
    return sha(name);
  };
  const std::string values = sha_of("values", ""), drawn = sha_of("drawn", "--reinitialise");
  EXPECT_NE(values, drawn);
  EXPECT_EQ(sha_of("drawn2", "--reinitialise"), drawn);
  const Outcome zoo = run(command(1, train("zoo", "--steps 1 --reinitialise")));
  EXPECT_EQ(zoo.status, 2);
}

TEST_F(ModelFileJob, EvaluatesAFileOnlyForItsOwnClasses) {
  const std::string file = write("d.onnx");
  const Outcome other = run(command(1, "evaluate --model " + file + " --data " + data()));
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.text.find("found 10 classes, but " + file + " is for 3"), std::string::npos) << other.text;
  const std::string three = three_classes();
  const Outcome same = run(command(1, "evaluate --json --model " + file + " --data " + three));
  ASSERT_EQ(same.status, 0) << same.text;
  EXPECT_NE(same.text.find("\"images\":30"), std::string::npos) << same.text;
  EXPECT_EQ(run(command(1, "evaluate --data " + three)).status, 2);
}

// In a folded file, batch norms are merged into convolutions. Such a network cannot be trained, but
// must give the same results.
TEST_F(ModelFileJob, EvaluatesAndPredictsWithAFoldedFileButTrainsNone) {
  ASSERT_EQ(run(command(1, train("plain", "--steps 3"))).status, 0);
  const std::string folded = (folder() / "folded.onnx").string();
  const std::string checkpoint = " --checkpoint " + out("plain") + " --data " + data(),
                    model = " --model " + folded + " --data " + data();
  ASSERT_EQ(run(std::string(CONVOY_PROGRAM) + " export --checkpoint " + out("plain") +
                " --fold-batch-norm --out " + folded)
                .status,
            0);
  for (const std::string& verb :
       {train("folded", "--steps 1", folded), train("folded", "--steps 1 --init " + folded)}) {
    const Outcome refused = run(command(1, verb));
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.text.find(folded + ": its batch norms were folded into convolutions"),
              std::string::npos)
        << refused.text;
  }
  const auto loss = [](const Outcome& evaluated) {
    EXPECT_EQ(evaluated.status, 0) << evaluated.text;
    return json::parse(evaluated.text.substr(evaluated.text.find("{\""))).at("test_loss").get<double>();
  };
  const double expected = loss(run(command(1, "evaluate --json" + checkpoint)));
  EXPECT_NEAR(loss(run(command(1, "evaluate --json" + model))), expected, 1e-4);
  const std::string table = (folder() / "folded.csv").string();
  const Outcome predicted = run(command(1, "predict" + model + " --out " + table));
  ASSERT_EQ(predicted.status, 0) << predicted.text;
  EXPECT_NE(predicted.text.find("90 images by " + folded), std::string::npos) << predicted.text;
}

TEST_F(ModelFileJob, EvaluatesANetworkOfTheZooWithTheWeightsOfAFile) {
  ASSERT_EQ(run(command(1, train("zoo-weights", "--steps 3"))).status, 0);
  const std::string weights = (folder() / "weights.safetensors").string();
  ASSERT_EQ(
      run(std::string(CONVOY_PROGRAM) + " export --checkpoint " + out("zoo-weights") + " --out " + weights)
          .status,
      0);
  const auto summary_of = [&](const std::string& flags) {
    return run(command(1, "evaluate --data " + data() + " " + flags));
  };
  const Outcome whole = summary_of("--checkpoint " + out("zoo-weights"));
  const Outcome taken = summary_of("--model wrn10_1 --init " + weights);
  ASSERT_EQ(taken.status, 0) << taken.text;
  const auto numbers = [](const std::string& text) { return text.substr(text.find("loss "), 40); };
  EXPECT_EQ(numbers(taken.text).substr(0, 12), numbers(whole.text).substr(0, 12)) << taken.text << whole.text;
  const Outcome other = summary_of("--model wrn16_1 --init " + weights);
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.text.find("weights.safetensors: gives no values for "), std::string::npos) << other.text;
  EXPECT_EQ(summary_of("--model wrn10_1").status, 2);
}

}  // namespace
}  // namespace convoy::test
