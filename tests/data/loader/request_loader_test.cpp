// Tests the loader of a prediction service, which fills batches with images as requests come.
#include "data/loader/request_loader.h"

#include <algorithm>
#include <stdexcept>

#include "data/image_files.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

constexpr std::int64_t kCapacity = 5;

class RequestBatches : public ::testing::TestWithParam<BatchOutput> {
 protected:
  RequestBatches() {
    for (int i = 0; i < 12; ++i) {
      const Image picture = smooth_image(30 + 7 * i, 90 - 3 * i, 3, i);
      images_.push_back(i % 2 == 0 ? encode_png(picture) : encode_jpeg(picture));
    }
  }
  static LoaderOptions options() {
    LoaderOptions options;
    options.global_batch = kCapacity;
    options.augmentation.height = options.augmentation.width = 24;
    options.augmentation.resize_short = 28;
    options.mean = {0.5f, 0.4f, 0.3f};
    options.std = {0.2f, 0.3f, 0.4f};
    options.output = GetParam();
    options.threads = 2;
    return options;
  }
  RequestLoader::Read reader(std::int64_t first) const {
    return [this, first](std::int64_t image, Bytes& scratch) {
      scratch = images_[first + image];
      return std::span<const std::uint8_t>(scratch);
    };
  }
  // Returns image i of the batch as the network would get it.
  static std::vector<float> content(const Batch& batch, std::int64_t i) {
    std::vector<float> image(static_cast<std::size_t>(batch.shape.bytes()));
    if (batch.images != nullptr) {
      std::copy_n(batch.images + i * batch.shape.bytes(), batch.shape.bytes(), image.data());
    } else {
      const LoaderOptions rules = options();
      Augmenter augmenter(rules.augmentation, {0, 0, 3}, rules.mean, rules.std, ImageLayout::row_major);
      augmenter.apply(batch.cuts, batch.transforms[i], image.data());
    }
    return image;
  }

  std::vector<Bytes> images_;
};

TEST_P(RequestBatches, AreThoseOfALoader) {
  TemporaryFolder folder;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < images_.size(); ++i) {
    paths.push_back(folder / std::to_string(i));
    write_bytes(paths.back(), images_[i]);
  }
  LoaderOptions rules = options();
  rules.order = Order::sequential;
  Loader loader(std::make_shared<ImageFiles>(paths, ImageFilesOptions{}), rules);
  std::vector<std::vector<float>> expected;
  for (std::int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    const BatchLease batch = loader.next();
    for (std::int32_t i = 0; i < batch->valid; ++i) expected.push_back(content(*batch, i));
  }
  RequestLoader requests(3, options());
  std::vector<std::string> errors;
  std::int64_t first = 0;
  for (const std::int64_t count : {1, 5, 4, 2, 0}) {
    requests.submit(count, reader(first));
    const BatchLease batch = requests.next(errors);
    EXPECT_EQ(batch->capacity, kCapacity);
    EXPECT_EQ(batch->valid, count);
    EXPECT_EQ(batch->global_valid, std::max<std::int64_t>(count, 1));
    EXPECT_EQ(errors, std::vector<std::string>(count));
    for (std::int64_t i = 0; i < kCapacity; ++i) {
      EXPECT_EQ(batch->samples[i], i < count ? i : -1);
      EXPECT_EQ(batch->labels[i], -1);
      if (i < count) {
        EXPECT_TRUE(content(*batch, i) == expected[first + i]) << first + i;
      }
    }
    first += count;
  }
  EXPECT_EQ(first, std::ssize(images_));
}

TEST_P(RequestBatches, ADamagedImageLeavesItsEntryEmpty) {
  images_[1].resize(images_[1].size() / 2);
  images_[2] = Bytes(100, 'x');
  RequestLoader requests(3, options());
  requests.submit(5, [this](std::int64_t image, Bytes& scratch) {
    if (image == 3) throw std::runtime_error("no such file");
    return reader(0)(image, scratch);
  });
  std::vector<std::string> errors;
  const BatchLease batch = requests.next(errors);
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_EQ(errors[0] + errors[4], "");
  EXPECT_NE(errors[1].find("bad JPEG"), std::string::npos) << errors[1];
  EXPECT_EQ(errors[2], "neither a JPEG nor a PNG image");
  EXPECT_EQ(errors[3], "no such file");
  EXPECT_EQ(std::vector(batch->samples, batch->samples + 5), (std::vector<std::int64_t>{0, -1, -1, -1, 4}));
}

TEST_P(RequestBatches, ABatchIsFilledWhileAnotherIsLent) {
  LoaderOptions two = options();
  two.buffers = 2;
  RequestLoader requests(3, two);
  std::vector<std::string> errors;
  requests.submit(2, reader(0));
  requests.submit(3, reader(2));
  BatchLease first = requests.next(errors);
  const std::vector<float> before = content(*first, 1);
  EXPECT_THROW(requests.submit(1, reader(0)), std::logic_error);
  const BatchLease second = requests.next(errors);
  EXPECT_EQ(second->valid, 3);
  EXPECT_TRUE(content(*first, 1) == before);
  first.reset();
  requests.submit(1, reader(0));
  EXPECT_THROW(requests.submit(kCapacity + 1, reader(0)), std::exception);
}

INSTANTIATE_TEST_SUITE_P(, RequestBatches, ::testing::Values(BatchOutput::images, BatchOutput::cuts),
                         [](const auto& info) {
                           return info.param == BatchOutput::images ? "Images" : "Cuts";
                         });

}  // namespace
}  // namespace convoy::data
