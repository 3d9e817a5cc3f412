#include "data/loader/augmentation.h"

#include <stdexcept>

#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

TEST(Augmentation, ReadsItsWords) {
  const Augmentation a = parse_augmentation("crop:2,flip,cutout:16,erase:0.25");
  EXPECT_TRUE(a.random_crop && a.flip && a.cutout && !a.random_resized_crop);
  EXPECT_EQ(a.padding, 2);
  EXPECT_EQ(a.cutout_size, 16);
  EXPECT_EQ(a.erasing, 0.25f);
  EXPECT_TRUE(parse_augmentation("resized-crop").random_resized_crop);
  EXPECT_FALSE(parse_augmentation("none").flip);
  expect_error([] { parse_augmentation("crop,flop"); }, {"'flop'", "flip"});
  expect_error([] { parse_augmentation("crop:x"); }, {"crop:x", "PIXELS"});
  expect_error([] { parse_augmentation("crop:-1"); }, {"crop:-1"});
  expect_error([] { parse_augmentation("flip:2"); }, {"flip:2"});
  expect_error([] { parse_augmentation("erase:1.5"); }, {"erase:1.5", "PROBABILITY"});
}

TEST(Augmentation, RefusesWhatCannotBe) {
  Augmentation both = parse_augmentation("crop,resized-crop");
  expect_error([&] { both.output_shape({32, 32, 3}); }, {"exclude"});
  Augmentation large = parse_augmentation("crop:4");
  large.height = large.width = 48;
  expect_error([&] { large.output_shape({32, 32, 3}); }, {"48x48", "32x32", "padding of 4"});
  Augmentation blank = parse_augmentation("cutout:32");
  blank.output_shape({32, 32, 3});
  expect_error([&] { blank.output_shape({31, 40, 3}); }, {"32x32", "40x31"});
  blank.height = blank.width = 31;
  expect_error([&] { blank.output_shape({32, 32, 3}); }, {"32x32", "31x31"});
  Augmentation resize;
  resize.height = resize.width = 224;
  resize.resize_short = 223;
  expect_error([&] { resize.output_shape({256, 256, 3}); }, {"224x224", "223"});
  Augmentation area;
  area.min_erased_area = 0;
  EXPECT_THROW(area.output_shape({32, 32, 3}), std::runtime_error);
  EXPECT_THROW(Augmenter({}, {4, 4, 3}, {}, {}, ImageLayout::row_major), std::invalid_argument);
}

// A set of encoded images has size 0x0, because its images differ in size. Such a set needs an
// output size.
TEST(Augmentation, ImagesOfUnknownSizeNeedAnOutputSize) {
  Augmentation augmentation = parse_augmentation("crop:4,flip");
  expect_error([&] { augmentation.output_shape({0, 0, 3}); }, {"differ in size"});
  augmentation.height = 24;
  expect_error([&] { augmentation.output_shape({0, 0, 3}); }, {"differ in size"});
  augmentation.width = 32;
  EXPECT_EQ(augmentation.output_shape({0, 0, 3}), (ImageShape{24, 32, 3}));
  augmentation.cutout = true;
  augmentation.cutout_size = 25;
  expect_error([&] { augmentation.output_shape({0, 0, 3}); }, {"25x25", "32x24"});
}

}  // namespace
}  // namespace convoy::data
