// Compares image operations with the results of torchvision and Pillow on the same pictures
// (make_image_ops.py), and tests the random choice of operations.
#include "kernels/device/image_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "data/loader/image_op_settings.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using kernels::ImageOp;
using kernels::ImageOpKind;
using kernels::ImageOps;
using testing::Bytes;
using Ops = std::array<ImageOp, kernels::kMostImageOps>;

constexpr const char* kNames[] = {"Identity",  "ShearX",     "ShearY",       "TranslateX", "TranslateY",
                                  "Rotate",    "Brightness", "Color",        "Contrast",   "Sharpness",
                                  "Posterize", "Solarize",   "AutoContrast", "Equalize"};
static_assert(std::size(kNames) == kAugmentOps);

AugmentOp named(const std::string& name) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  EXPECT_NE(found, std::end(kNames)) << name;
  return static_cast<AugmentOp>(found - std::begin(kNames));
}

// Makes the same picture as picture() in make_image_ops.py.
Bytes picture(ImageShape shape, int kind) {
  Bytes levels(static_cast<std::size_t>(shape.height * shape.width * shape.channels));
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::size_t channels = shape.channels, c = i % channels, x = i / channels % shape.width,
                      y = i / channels / shape.width;
    const auto noise = static_cast<std::uint32_t>(i * 2654435761u) >> 26;
    std::size_t level = (y * 7 + x * 5 + c * 40 + noise) % 256;
    if (kind == 1) level = 60 + level / 8 * (1 + c);
    if (kind == 2) level = 90 + 10 * c;
    levels[i] = static_cast<std::uint8_t>(level);
  }
  return levels;
}

Bytes applied(const std::vector<ImageOp>& ops, Bytes image, ImageShape shape) {
  ImageOps(shape.height, shape.width, shape.channels).apply(ops, image.data());
  return image;
}

std::uint64_t fnv(const Bytes& bytes) {
  std::uint64_t value = 0xCBF29CE484222325u;
  for (const std::uint8_t byte : bytes) value = (value ^ byte) * 0x100000001B3u;
  return value;
}

std::vector<std::string> expected_lines(const std::string& first_word) {
  std::ifstream file(CONVOY_EXPECTED "/image_ops.txt");
  EXPECT_TRUE(file.good()) << "cannot read image_ops.txt";
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(first_word + " ")) lines.push_back(line.substr(first_word.size()));
  return lines;
}

// Every operation must give Pillow's pixels, at every magnitude of TrivialAugment and RandAugment.
TEST(ImageOps, ArePillows) {
  std::map<std::string, int> cases;
  for (const std::string& line : expected_lines("case")) {
    std::istringstream words(line);
    std::string op, pixels;
    double magnitude = 0;
    ImageShape shape;
    int kind = 0;
    std::uint64_t hash = 0;
    words >> op >> magnitude >> shape.height >> shape.width >> shape.channels >> kind >> std::hex >> hash;
    ASSERT_TRUE(words) << line;
    words >> pixels;
    const ImageOp drawn = op == "Hue" ? hue_op(magnitude) : image_op(named(op), magnitude, shape);
    const Bytes after = applied({drawn}, picture(shape, kind), shape);
    EXPECT_EQ(fnv(after), hash) << line.substr(0, 70);
    for (std::size_t i = 0; 2 * i < pixels.size(); ++i)
      ASSERT_EQ(after[i], std::stoi(pixels.substr(2 * i, 2), nullptr, 16))
          << line.substr(0, 70) << ", byte " << i;
    ++cases[op];
  }
  EXPECT_EQ(cases.size(), kAugmentOps + 1u);
  for (const char* geometric : {"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"})
    EXPECT_GT(cases[geometric], 120) << geometric;
}

TEST(ImageOps, MagnitudesAreTorchvisions) {
  int lines = 0;
  for (const std::string& line : expected_lines("magnitudes")) {
    std::istringstream words(line);
    std::string policy, op;
    ImageShape shape;
    words >> policy >> op >> shape.height >> shape.width;
    const AutoAugment augment = policy == "rand" ? AutoAugment::rand : AutoAugment::trivial;
    int bin = 0;
    for (double expected = 0; words >> expected; ++bin)
      EXPECT_FLOAT_EQ(magnitude_of(augment, named(op), bin, shape), expected)
          << line.substr(0, 40) << ": " << bin;
    EXPECT_TRUE(bin == 1 || bin == kMagnitudes) << line.substr(0, 40);
    ++lines;
  }
  EXPECT_EQ(lines, 2 * 3 * kAugmentOps);
}

TEST(ImageOps, AreAppliedOneAfterTheOther) {
  const ImageShape shape{37, 50, 3};
  const ImageOp rotate = image_op(AugmentOp::rotate, 20, shape),
                equalize = image_op(AugmentOp::equalize, 0, shape),
                sharpen = image_op(AugmentOp::sharpness, 0.9, shape);
  const Bytes before = picture(shape, 0);
  const Bytes after = applied({rotate, equalize, sharpen}, before, shape);
  EXPECT_EQ(after, applied({sharpen}, applied({equalize}, applied({rotate}, before, shape), shape), shape));
  EXPECT_NE(after, applied({equalize, rotate, sharpen}, before, shape));
  EXPECT_EQ(applied({rotate, {}, sharpen}, before, shape), applied({rotate}, before, shape))
      << "kind none ends the list";
}

TEST(ImageOps, RefuseOtherChannelsAndExtents) {
  EXPECT_THROW(ImageOps(4, 4, 2), std::invalid_argument);
  EXPECT_THROW(ImageOps(4, 4, 4), std::invalid_argument);
  EXPECT_THROW(ImageOps(0, 4, 3), std::invalid_argument);
  EXPECT_THROW(ImageOps(4, kernels::kMostImageOpExtent + 1, 3), std::invalid_argument);
}

constexpr ImageShape kShape{224, 224, 3};

Ops drawn(const ImageOpSettings& settings, std::int64_t sample, std::uint64_t seed = 1,
          std::int64_t epoch = 0) {
  Ops ops;
  ops.fill({ImageOpKind::equalize, 0, {}});  // old operations, which draw_image_ops() must clear
  draw_image_ops(settings, kShape, seed, epoch, sample, ops);
  return ops;
}

TEST(ImageOpDraws, DependOnSeedEpochAndSample) {
  for (const ImageOpSettings& settings :
       {ImageOpSettings{{0.4f, 0.4f, 0.4f, 0.1f}, AutoAugment::none},
        ImageOpSettings{{}, AutoAugment::trivial}, ImageOpSettings{{}, AutoAugment::rand}}) {
    int other_sample = 0, other_epoch = 0, other_seed = 0;
    for (int sample = 0; sample < 200; ++sample) {
      const Ops ops = drawn(settings, sample);
      EXPECT_EQ(ops, drawn(settings, sample));
      other_sample += ops != drawn(settings, sample + 1000);
      other_epoch += ops != drawn(settings, sample, 1, 1);
      other_seed += ops != drawn(settings, sample, 2);
    }
    EXPECT_GT(std::min({other_sample, other_epoch, other_seed}), 180);
  }
}

TEST(ImageOpDraws, ColourJitterDrawsFactorsAndOrder) {
  const ImageOpSettings settings{{0.4f, 0.2f, 2.0f, 0.1f}, AutoAugment::none};
  std::map<ImageOpKind, std::array<double, 3>> seen;  // lowest, highest and mean factor by kind
  std::set<std::vector<ImageOpKind>> orders;
  constexpr int kSamples = 4000;
  for (int sample = 0; sample < kSamples; ++sample) {
    std::vector<ImageOpKind> order;
    for (const ImageOp& op : drawn(settings, sample)) {
      if (op.kind == ImageOpKind::none) break;
      order.push_back(op.kind);
      const double value = op.kind == ImageOpKind::hue && op.value > 127 ? op.value - 256 : op.value;
      auto& [low, high, mean] = seen.try_emplace(op.kind, std::array<double, 3>{1e9, -1e9, 0}).first->second;
      low = std::min(low, value), high = std::max(high, value), mean += value / kSamples;
    }
    ASSERT_EQ(order.size(), 4u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 24u);
  const auto expect_range = [&](ImageOpKind kind, double low, double high) {
    const auto [lowest, highest, mean] = seen.at(kind);
    EXPECT_GE(lowest, low);
    EXPECT_LE(highest, high);
    EXPECT_NEAR(lowest, low, (high - low) * 0.01);
    EXPECT_NEAR(highest, high, (high - low) * 0.01);
    EXPECT_NEAR(mean, (low + high) / 2, (high - low) * 0.02);
  };
  expect_range(ImageOpKind::brightness, 1 - 0.4f, 1 + 0.4f);
  expect_range(ImageOpKind::contrast, 1 - 0.2f, 1 + 0.2f);
  expect_range(ImageOpKind::saturation, 0, 3);
  expect_range(ImageOpKind::hue, -25, 25);
}

TEST(ImageOpDraws, TrivialAugmentDrawsEveryOperationAndMagnitude) {
  const ImageOpSettings settings{{}, AutoAugment::trivial};
  EXPECT_EQ(settings.most(), 1);
  std::map<ImageOpKind, int> kinds;
  std::map<float, int> brightness;
  constexpr int kSamples = 30000;
  for (int sample = 0; sample < kSamples; ++sample) {
    const Ops ops = drawn(settings, sample);
    ++kinds[ops[0].kind];
    EXPECT_EQ(ops[1], ImageOp{});
    if (ops[0].kind == ImageOpKind::brightness) ++brightness[ops[0].value];
  }
  const double share = kSamples / 14.0;
  EXPECT_NEAR(kinds[ImageOpKind::equalize], share, 0.1 * share);
  EXPECT_NEAR(kinds[ImageOpKind::solarize], share, 0.1 * share);
  EXPECT_NEAR(kinds[ImageOpKind::sharpness], share * 30 / 31, 0.1 * share);
  EXPECT_NEAR(kinds[ImageOpKind::affine], share * 5 * 30 / 31, 0.1 * share * 5);
  EXPECT_EQ(kinds.size(), 10u) << "none, affine, eight more; no hue";
  EXPECT_EQ(brightness.size(), 60u) << "30 magnitudes of either sign";
}

TEST(ImageOpDraws, RandAugmentDrawsAsManyOfOneMagnitude) {
  ImageOpSettings settings{{}, AutoAugment::rand, 3, 9};
  std::size_t most = 0;
  std::set<float> factors;
  for (int sample = 0; sample < 2000; ++sample) {
    const Ops ops = drawn(settings, sample);
    const auto end = std::ranges::find(ops, ImageOpKind::none, &ImageOp::kind);
    most = std::max(most, static_cast<std::size_t>(end - ops.begin()));
    for (const ImageOp& op : ops)
      if (op.kind == ImageOpKind::contrast) factors.insert(op.value);
    EXPECT_TRUE(std::all_of(end, ops.end(), [](const ImageOp& op) { return op == ImageOp{}; }));
  }
  EXPECT_EQ(most, 3u);
  ASSERT_EQ(factors.size(), 2u);
  EXPECT_FLOAT_EQ(*factors.begin(), 1 - 0.27f);
  EXPECT_FLOAT_EQ(*factors.rbegin(), 1 + 0.27f);
}

TEST(ImageOpDraws, JitterComesFirst) {
  const ImageOpSettings settings{{0, 0, 0, 0.5f}, AutoAugment::trivial};
  EXPECT_EQ(settings.most(), 2);
  for (int sample = 0; sample < 100; ++sample) EXPECT_EQ(drawn(settings, sample)[0].kind, ImageOpKind::hue);
}

TEST(ImageOpDraws, SettingsAreChecked) {
  const auto refuse = [](const ImageOpSettings& settings, const std::vector<std::string>& words,
                         ImageShape shape = kShape) {
    testing::expect_error([&] { settings.check(shape); }, words);
  };
  EXPECT_NO_THROW((ImageOpSettings{}.check({4, 4, 2}))) << "no operation, any channels";
  EXPECT_NO_THROW((ImageOpSettings{{}, AutoAugment::rand, 8, 30}.check(kShape)));
  refuse({{-0.1f}}, {"brightness", "-0.1"});
  refuse({{0, std::nanf("")}}, {"contrast", "nan"});
  refuse({{0, 0, 0, 0.6f}}, {"hue", "0.6", "0.5"});
  refuse({{0.1f, 0.1f}, AutoAugment::rand, 7}, {"RandAugment", "7", "1 to 6"});
  refuse({{}, AutoAugment::rand, 0}, {"RandAugment", "0 operations"});
  refuse({{}, AutoAugment::rand, 2, 31}, {"RandAugment", "31", "0 to 30"});
  refuse({{}, AutoAugment::trivial}, {"2 channels", "1 or 3"}, {8, 8, 2});
}

}  // namespace
}  // namespace convoy::data
