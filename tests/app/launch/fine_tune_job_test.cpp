// Tests fine-tuning in whole jobs: --init, --freeze, --freeze-batch-norm, --rate and export.
#include <algorithm>

#include "tests/app/launch/edit_store.h"
#include "tests/app/launch/train_job.h"

namespace convoy::test {
namespace {

class FineTuning : public TrainJob {
 protected:
  static std::string checkpoint(const std::string& name, int step) {
    const std::string digits = std::to_string(step);
    return out(name) + "/checkpoint/step-" + std::string(8 - digits.size(), '0') + digits + ".h5";
  }
  static std::vector<float> read(const std::string& name, const std::string& tensor, int step = 4) {
    std::vector<float> values = read_floats(checkpoint(name, step), tensor);
    EXPECT_FALSE(values.empty()) << name << " " << tensor;
    return values;
  }
  static void make_base() {
    if (!fs::exists(checkpoint("base", 4))) {
      ASSERT_EQ(run(command(1, train("base", "--steps 4 --weight-decay 0.01"))).status, 0);
    }
  }
  static std::string from_base(const std::string& name, const std::string& flags) {
    return train(name, "--steps 4 --weight-decay 0.01 --init " + checkpoint("base", 4) + " " + flags);
  }
  static const std::string kLower;
};

// Freezes the first convolution, the layers layer1 and layer2 of wrn10_1, and one weight in layer3.
const std::string FineTuning::kLower =
    "--freeze 'conv1.*' --freeze 'layer[12].*' --freeze 'layer3.*conv2.weight' ";

TEST_F(FineTuning, FrozenParametersKeepTheirBits) {
  make_base();
  for (const char* optimizer : {"sgd", "lars", "adamw"}) {
    const std::string name = std::string("frozen_") + optimizer;
    const Outcome job = run(command(1, from_base(name, kLower + "--ema 0.5 --optimizer " + optimizer)));
    ASSERT_EQ(job.status, 0) << job.text;
    EXPECT_NE(job.text.find("of them trained"), std::string::npos) << job.text;
    for (const char* same :
         {"parameters/conv1.weight", "parameters/layer1.0.bn1.bias", "parameters/layer2.0.conv2.weight",
          "parameters/layer3.0.conv2.weight", "statistics/layer2.0.bn2.running_mean"})
      EXPECT_EQ(read(name, same), read("base", same)) << optimizer << " " << same;
    for (const char* other :
         {"parameters/fc.weight", "parameters/layer3.0.conv1.weight", "statistics/layer3.0.bn2.running_var"})
      EXPECT_NE(read(name, other), read("base", other)) << optimizer << " " << other;
    EXPECT_EQ(read(name, "averages/conv1.weight.ema"), read("base", "parameters/conv1.weight"));
  }
}

TEST_F(FineTuning, HasTheSameBitsSplitOverRanksAndResumed) {
  make_base();
  const std::string flags = kLower + "--rate 'fc.*=10' --clip-gradient-norm 1 ";
  ASSERT_EQ(run(command(1, from_base("whole", flags))).status, 0);
  const Outcome split = run(command(2, from_base("split", flags + "--partition 2")));
  ASSERT_EQ(split.status, 0) << split.text;
  EXPECT_EQ(sha("split"), sha("whole"));
  std::string first = from_base("resumed", flags);
  first.replace(first.find("--steps 4"), 9, "--steps 2");
  ASSERT_EQ(run(command(1, first)).status, 0);
  const Outcome resumed = run(command(1, from_base("resumed", flags + "--resume")));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(sha("resumed"), sha("whole"));
  const Outcome other = run(command(1, from_base("resumed", kLower + "--clip-gradient-norm 1 --resume")));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.text.find("--rate: found []"), std::string::npos) << other.text;
  ASSERT_EQ(run(command(2, from_base("ranks", flags))).status, 0);
  const auto one = losses("whole"), two = losses("ranks");
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two.at(i), one[i], 1e-3 * one[i]);
  EXPECT_EQ(read("ranks", "parameters/layer1.0.conv1.weight"),
            read("base", "parameters/layer1.0.conv1.weight"));
}

// The first step of SGD without momentum is proportional to the learning rate. So --rate 0.5 must
// halve the change of a parameter.
TEST_F(FineTuning, ARateIsAFactorOfTheStep) {
  make_base();
  const auto change = [&](const std::string& name, const std::string& flags) {
    std::string line = from_base(name, "--momentum 0 --freeze-batch-norm " + flags);
    line.replace(line.find("--steps 4 --weight-decay 0.01"), 29, "--steps 1");
    EXPECT_EQ(run(command(1, line)).status, 0);
    std::vector<float> moved = read(name, "parameters/fc.weight", 1),
                       from = read("base", "parameters/fc.weight");
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= from[i];
    return moved;
  };
  const auto plain = change("rate1", ""), halved = change("rate2", "--rate '*=3' --rate 'fc.*=0.5'");
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(halved[i], 0.5f * plain[i], 1e-6f);
  EXPECT_EQ(read("rate1", "statistics/layer1.0.bn1.running_mean", 1),
            read("base", "statistics/layer1.0.bn1.running_mean"));
}

TEST_F(FineTuning, ExportedWeightsStartAsTheSameNetwork) {
  make_base();
  const std::string file = out("base.safetensors");
  const Outcome exported = run(command(1, "export --checkpoint " + checkpoint("base", 4) + " --out " + file));
  ASSERT_EQ(exported.status, 0) << exported.text;
  // A run must train at least one parameter. Here it trains only the head's bias, at a rate that is
  // too small to change it, so all values must stay.
  const std::string still = "--steps 1 --freeze '*' --rate 'fc.bias=1e-30' --init " + file;
  const Outcome job = run(command(1, train("again", still)));
  ASSERT_EQ(job.status, 0) << job.text;
  EXPECT_EQ(sha("again"), sha("base"));
  EXPECT_EQ(read("again", "statistics/layer3.0.bn1.running_var", 1),
            read("base", "statistics/layer3.0.bn1.running_var"));
  const std::string second = out("second.safetensors");
  ASSERT_EQ(run(command(1, "export --checkpoint " + checkpoint("base", 4) + " --out " + second)).status, 0);
  std::ifstream a(file, std::ios::binary), b(second, std::ios::binary);
  EXPECT_TRUE(std::equal(std::istreambuf_iterator<char>(a), {}, std::istreambuf_iterator<char>(b), {}));
}

TEST_F(FineTuning, AHeadFollowsTheNamesOfItsClasses) {
  make_base();
  std::vector<std::string> names{"disc", "ring",     "square",   "triangle", "cross",
                                 "star", "crescent", "two_bars", "frame",    "dots"};
  ASSERT_NE(run(command(1, "data info " + data())).text.find("9  dots"), std::string::npos);
  std::ranges::reverse(names);
  rename_classes(data(), out("turned.h5"), names);
  names[0] = "other";
  rename_classes(data(), out("renamed.h5"), names);
  const std::string saved = checkpoint("base", 4), tensors = out("base.safetensors"),
                    model = out("base.onnx");
  for (const std::string& file : {tensors, model})
    ASSERT_EQ(run(command(1, "export --checkpoint " + saved + " --out " + file)).status, 0);
  const auto base = read("base", "parameters/fc.weight");
  const std::size_t row = base.size() / names.size();
  const std::vector<std::pair<std::string, std::string>> ways{
      {"h5", "--model wrn10_1 --init " + saved},
      {"safetensors", "--model wrn10_1 --init " + tensors},
      {"onnx", "--model wrn10_1 --init " + model},
      {"model", "--model " + model}};
  for (const auto& [way, flags] : ways) {
    SCOPED_TRACE(way);
    const std::string turned = "turned_" + way, renamed = "renamed_" + way;
    for (const std::string& name : {turned, renamed}) {
      const Outcome job = run(command(1, "train --global-batch 51 --threads 1 --steps 1 --data " +
                                             out(name == turned ? "turned" : "renamed") + ".h5 " + flags +
                                             " --freeze '*' --rate fc.bias=1e-30 --out " + out(name)));
      ASSERT_EQ(job.status, 0) << job.text;
      EXPECT_EQ(job.text.find("fc is drawn: the file's classes are others") != std::string::npos,
                name == renamed)
          << job.text;
      EXPECT_EQ(job.text.find("fc is reordered: the file's classes have another order") != std::string::npos,
                name == turned)
          << job.text;
    }
    const auto rows = read(turned, "parameters/fc.weight", 1);
    ASSERT_EQ(rows.size(), base.size());
    for (std::size_t i = 0; i < names.size(); ++i)
      EXPECT_TRUE(std::equal(base.begin() + i * row, base.begin() + (i + 1) * row,
                             rows.begin() + (names.size() - 1 - i) * row))
          << i;
    EXPECT_NE(read(renamed, "parameters/fc.weight", 1), base);
    EXPECT_EQ(read(renamed, "parameters/conv1.weight", 1), read("base", "parameters/conv1.weight"));
  }
}

TEST_F(FineTuning, MistakesAreSaidInOneLine) {
  make_base();
  const auto expect = [&](const std::string& flags, int status, const std::string& text) {
    const Outcome job = run(command(1, train("wrong", "--steps 1 " + flags)));
    EXPECT_EQ(job.status, status) << job.text;
    EXPECT_NE(job.text.find(text), std::string::npos) << job.text;
    EXPECT_FALSE(fs::exists(out("wrong") + "/summary.json"));
  };
  expect("--freeze 'block1.*'", 2, "--freeze block1.*: fits no parameter of wrn10_1");
  expect("--freeze '*'", 2, "found all parameters of wrn10_1 frozen");
  expect("--rate fc.weight", 2, "--rate: found 'fc.weight', expected PATTERN=FACTOR");
  expect("--rate fc.weight=-1", 2, "expected PATTERN=FACTOR with a factor of at least 0");
  expect("--rate fc.weight=nan", 2, "expected PATTERN=FACTOR with a factor of at least 0");
  expect("--init missing.safetensors", 1, "missing.safetensors: cannot open: No such file or directory");
  expect("--init weights.pth", 2, "--init: found 'weights.pth', expected a file that ends in");
  expect("--init " + data(), 1, data() + ": ");
}

TEST_F(FineTuning, ExportRefusesWhatItCannotWrite) {
  make_base();
  const auto expect = [&](const std::string& flags, int status, const std::string& text) {
    const Outcome job = run(command(1, "export --checkpoint " + checkpoint("base", 4) + " " + flags));
    EXPECT_EQ(job.status, status) << job.text;
    EXPECT_NE(job.text.find(text), std::string::npos) << job.text;
  };
  expect("--out " + out("x.pt"), 2, "expected a file that ends in .onnx or .safetensors");
  expect("--fold-batch-norm --out " + out("x.safetensors"), 2,
         "--fold-batch-norm: found a .safetensors file");
  expect("--ema --out " + out("x.safetensors"), 1, "holds no moving averages");
  expect("--out " + out("no/folder/x.onnx"), 1, "no/folder");
  EXPECT_FALSE(fs::exists(out("x.safetensors")));
}

}  // namespace
}  // namespace convoy::test
