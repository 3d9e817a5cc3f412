#include "app/model/import/arrangement.h"

#include <gtest/gtest.h>

namespace convoy::app::onnx_import {
namespace {

const Arrangement kImage({2, 12, 5, 7});

TEST(Arrangement, FindsShufflesOfChannels) {
  const auto split = kImage.reshaped({2, 3, 4, 5, 7});
  const auto shuffled = split->transposed({0, 2, 1, 3, 4})->reshaped({2, 12, 5, 7});
  EXPECT_EQ(shuffled->shuffle_groups(), 3);
  EXPECT_FALSE(shuffled->is_plain());
  EXPECT_EQ(split->reshaped({2, 12, 5, 7})->shuffle_groups(), 0);
  EXPECT_TRUE(split->reshaped({2, 12, 5, 7})->is_plain());
  EXPECT_TRUE(split->reshaped({2, 12, 35})->reshaped({2, 12, 5, 7})->is_plain());
}

TEST(Arrangement, KnowsFlatImagesByTheirOrder) {
  EXPECT_TRUE(kImage.reshaped({2, 420})->is_flat());
  EXPECT_FALSE(kImage.transposed({0, 2, 3, 1})->reshaped({2, 420})->is_flat());
  EXPECT_FALSE(kImage.reshaped({1, 840})->is_flat());
  EXPECT_TRUE(Arrangement({1, 12, 1, 1}).reshaped({1, 12})->is_flat());
}

TEST(Arrangement, HasNoCutsInsideOfAnAxis) {
  EXPECT_EQ(kImage.reshaped({2, 5, 12, 7}), std::nullopt);
  EXPECT_EQ(kImage.reshaped({5, 168}), std::nullopt);
  EXPECT_EQ(kImage.transposed({0, 1, 2}), std::nullopt);
  EXPECT_EQ(kImage.transposed({0, 1, 2, 2}), std::nullopt);
}

TEST(Arrangement, KeepsTheBatchOfOneSample) {
  const Arrangement one({1, 12, 1, 1});
  EXPECT_EQ(one.reshaped({1, 12})->place_of(0), 0);
  EXPECT_EQ(one.reshaped({1, 12})->reshaped({1, 12, 1, 1})->is_plain(), true);
  EXPECT_EQ(one.transposed({0, 2, 3, 1})->place_of(1), 3);
}

TEST(Arrangement, TellsWhichChannelsAPartHas) {
  const auto range = kImage.channel_range(1, 3, 4);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 3);
  EXPECT_EQ(range->view.dims(), (Dims{2, 4, 5, 7}));
  EXPECT_TRUE(range->view.is_plain());
  const auto group = kImage.reshaped({2, 3, 4, 5, 7})->channel_range(1, 1, 1);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->begin, 4);
  EXPECT_EQ(group->count, 4);
  EXPECT_TRUE(group->view.reshaped({2, 4, 5, 7})->is_plain());
  // None of these is a range of channels. The first has two channels of every group, which are not
  // consecutive in the image. The second has two rows of pixels. The third goes beyond the 12
  // channels of the image.
  EXPECT_FALSE(kImage.reshaped({2, 3, 4, 5, 7})->channel_range(2, 0, 2));
  EXPECT_FALSE(kImage.channel_range(2, 0, 2));
  EXPECT_FALSE(kImage.channel_range(1, 10, 4));
}

}  // namespace
}  // namespace convoy::app::onnx_import
