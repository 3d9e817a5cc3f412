// Tests the order and the memory limit of images that are converted in parallel.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "data/convert/pipeline.h"

namespace convoy::data {
namespace {

constexpr std::int64_t kMemory = 250;

std::unique_ptr<ConvertedImage> image_of_row(std::int64_t row) {
  auto image = std::make_unique<ConvertedImage>();
  image->sample.row = row;
  return image;
}

// Each image reserves 100 bytes while it is made, and keeps 60 until it is delivered. Every tenth
// image takes longest, so the images after it are finished first and wait for their delivery. While
// they wait, their 60 bytes must count against the limit.
TEST(ConvertPipeline, FinishedImagesCountUntilTheyAreDelivered) {
  std::atomic<std::int64_t> used{0}, most{0};
  std::vector<std::int64_t> delivered;
  ConvertPipeline* pipeline = nullptr;
  ConvertPipeline made(
      4, kMemory,
      [&](ConvertedImage& image) {
        ASSERT_TRUE(pipeline->reserve(image, 100));
        const std::int64_t now = used += 100;
        for (std::int64_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        if (image.sample.row % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        used -= 40;
        pipeline->keep(image, 60);
      },
      [&](ConvertedImage& image) {
        delivered.push_back(image.sample.row);
        used -= 60;
      });
  pipeline = &made;
  for (std::int64_t row = 0; row < 30; ++row) made.submit(image_of_row(row), 1);
  made.finish();
  ASSERT_EQ(delivered.size(), 30u);
  for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(delivered[i], static_cast<std::int64_t>(i));
  EXPECT_GT(most, 100);
  EXPECT_LE(most, kMemory);
}

// An image may need all the memory. Later images wait until it is delivered, and must not hold
// memory while they wait: that would be a deadlock.
TEST(ConvertPipeline, AnImageNeverWaitsForALaterOne) {
  std::int64_t delivered = 0;
  ConvertPipeline* pipeline = nullptr;
  ConvertPipeline made(
      4, kMemory,
      [&](ConvertedImage& image) {
        if (image.sample.row % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ASSERT_TRUE(pipeline->reserve(image, image.sample.row % 3 == 0 ? 10 * kMemory : 1));
      },
      [&](ConvertedImage&) { ++delivered; });
  pipeline = &made;
  for (std::int64_t row = 0; row < 12; ++row) made.submit(image_of_row(row), 1);
  made.finish();
  EXPECT_EQ(delivered, 12);
}

// If a delivery fails, threads that wait for memory must end.
TEST(ConvertPipeline, AnErrorEndsTheWaitForMemory) {
  const auto run = [] {
    ConvertPipeline* pipeline = nullptr;
    ConvertPipeline made(
        4, kMemory, [&](ConvertedImage& image) { pipeline->reserve(image, 200); },
        [](ConvertedImage&) { throw std::runtime_error("full"); });
    pipeline = &made;
    for (std::int64_t row = 0; row < 6; ++row) made.submit(image_of_row(row), 1);
    made.finish();
  };
  EXPECT_THROW(run(), std::runtime_error);
}

TEST(ConvertPipeline, ALargeFileComesAlone) {
  std::vector<std::int64_t> delivered;
  ConvertPipeline* pipeline = nullptr;
  ConvertPipeline made(
      2, kMemory, [&](ConvertedImage& image) { pipeline->reserve(image, 1); },
      [&](ConvertedImage& image) { delivered.push_back(image.sample.row); });
  pipeline = &made;
  made.submit(image_of_row(0), ConvertPipeline::kFileBytes);
  made.make_room(1);
  EXPECT_EQ(delivered, std::vector<std::int64_t>{0});
  made.submit(image_of_row(1), 1);
  made.submit(image_of_row(2), 2 * ConvertPipeline::kFileBytes);
  EXPECT_EQ(delivered, (std::vector<std::int64_t>{0, 1}));
  made.finish();
}

}  // namespace
}  // namespace convoy::data
