#include "data/loader/loader.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <set>
#include <thread>

#include "tests/data/loader/loader_support.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}

// Counts allocations, so that a test can check that a loader allocates nothing after its first
// batches. The operators are not inlined, because GCC would see malloc and delete together and
// warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace convoy::data {
namespace {

using namespace testing;

std::shared_ptr<TestSet> make_set(std::int64_t size) { return std::make_shared<TestSet>(size); }

std::size_t image_values(const BatchCopy& batch) {
  return batch.images.size() / static_cast<std::size_t>(batch.capacity);
}

TEST(Loader, AnEpochHoldsEverySampleOnceInANewOrder) {
  const auto set = make_set(50);
  Loader loader(set, loader_options(8));
  EXPECT_EQ(loader.steps_per_epoch(), 7);
  std::vector<std::vector<std::int64_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> samples;
    for (std::int64_t step = 0; step < 7; ++step) {
      const auto batch = loader.next();
      EXPECT_EQ(batch->position, (BatchPosition{epoch, step}));
      EXPECT_EQ(batch->valid, step == 6 ? 2 : 8);
      samples.insert(samples.end(), batch->samples, batch->samples + batch->valid);
      for (int i = 0; i < batch->valid; ++i) EXPECT_EQ(batch->labels[i], batch->samples[i] % 7);
    }
    EXPECT_EQ(std::set<std::int64_t>(samples.begin(), samples.end()).size(), 50u);
    epochs.push_back(samples);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

// The parts of a batch on all ranks, in rank order, must be the batch of a single rank: samples,
// labels, parameters and every bit of the images.
TEST(Loader, WhatIsReadDoesNotDependOnTheNumberOfRanks) {
  const auto set = make_set(43);
  const std::int64_t steps = 12;  // two epochs of six batches, the last of which has 3 samples
  Loader alone(set, loader_options(8));
  const auto expected = take(alone, steps);
  for (int ranks = 2; ranks <= 8; ++ranks) {
    std::vector<std::vector<BatchCopy>> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      Loader loader(set, loader_options(8, rank, ranks));
      parts.push_back(take(loader, steps));
    }
    for (std::size_t step = 0; step < static_cast<std::size_t>(steps); ++step) {
      const BatchCopy& whole = expected[step];
      std::size_t at = 0;
      for (const auto& part : parts) {
        const BatchCopy& batch = part[step];
        EXPECT_EQ(batch.capacity, (8 + ranks - 1) / ranks);
        EXPECT_EQ(batch.position, whole.position);
        EXPECT_EQ(batch.global_valid, whole.valid);
        EXPECT_EQ(batch.first, static_cast<std::int64_t>(at));
        const std::size_t values = image_values(batch);
        for (std::size_t i = 0; i < static_cast<std::size_t>(batch.valid); ++i, ++at) {
          ASSERT_EQ(batch.samples[i], whole.samples[at]) << ranks << " ranks, step " << step;
          ASSERT_EQ(batch.labels[i], whole.labels[at]);
          ASSERT_TRUE(std::equal(batch.images.begin() + static_cast<std::ptrdiff_t>(i * values),
                                 batch.images.begin() + static_cast<std::ptrdiff_t>((i + 1) * values),
                                 whole.images.begin() + static_cast<std::ptrdiff_t>(at * values)));
        }
      }
      EXPECT_EQ(at, static_cast<std::size_t>(whole.valid));
    }
  }
}

TEST(Loader, RanksWithoutSamplesStillGetABatch) {
  // An epoch has batches of 8 and 2 samples. The second batch has none for ranks 2 to 4.
  const auto set = make_set(10);
  for (int rank = 0; rank < 5; ++rank) {
    Loader loader(set, loader_options(8, rank, 5));
    loader.next();
    const BatchCopy batch(*loader.next());
    EXPECT_EQ(batch.position, (BatchPosition{0, 1}));
    EXPECT_EQ(batch.capacity, 2);
    EXPECT_EQ(batch.valid, rank < 2 ? 1 : 0);
    EXPECT_EQ(batch.global_valid, 2);
    for (int i = batch.valid; i < batch.capacity; ++i) {
      EXPECT_EQ(batch.labels[static_cast<std::size_t>(i)], -1);
      EXPECT_EQ(batch.samples[static_cast<std::size_t>(i)], -1);
    }
    const auto padding =
        batch.images.begin() + static_cast<std::ptrdiff_t>(image_values(batch)) * batch.valid;
    EXPECT_TRUE(std::all_of(padding, batch.images.end(), [](float value) { return value == 0; }));
  }
}

TEST(Loader, SequentialIsTheStoredOrder) {
  auto options = loader_options(4);
  options.order = Order::sequential;
  options.augmentation = {};
  const auto set = make_set(10);
  Loader loader(set, options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::int64_t expected = 0;
    for (const BatchCopy& batch : take(loader, 3)) {
      for (int i = 0; i < batch.valid; ++i) EXPECT_EQ(batch.samples[static_cast<std::size_t>(i)], expected++);
    }
    EXPECT_EQ(expected, 10);
  }
}

TEST(Loader, ResumesAnywhereWithTheSameBits) {
  const auto set = make_set(43);
  Loader whole(set, loader_options(8, 1, 3));
  const auto expected = take(whole, 14);
  for (const std::int64_t start : {1, 5, 6, 7, 11}) {
    auto options = loader_options(8, 1, 3);
    options.start = {start / 6, start % 6};
    Loader resumed(set, options);
    const auto rest = take(resumed, 14 - start);
    for (std::size_t i = 0; i < rest.size(); ++i)
      EXPECT_EQ(rest[i], expected[i + static_cast<std::size_t>(start)]);
  }
  auto options = loader_options(8, 1, 3);
  options.start = {0, 6};  // counts as step 0 of epoch 1
  Loader resumed(set, options);
  EXPECT_EQ(BatchCopy(*resumed.next()), expected[6]);
}

TEST(Loader, ThreadsAndBuffersDoNotChangeABit) {
  const auto set = make_set(300);
  Loader one(set, loader_options(90));
  const auto expected = take(one, 9);
  for (const int threads : {2, 5}) {
    for (const int buffers : {2, 7}) {
      auto options = loader_options(90);
      options.threads = threads;
      options.buffers = buffers;
      Loader loader(set, options);
      EXPECT_EQ(take(loader, 9), expected) << threads << " threads, " << buffers << " buffers";
    }
  }
}

std::vector<BatchCopy> take_as(const std::shared_ptr<const ImageSet>& set, LoaderOptions options,
                               BatchOutput output, std::int64_t count, int threads = 3) {
  options.output = output;
  options.threads = threads;
  Loader loader(set, options);
  std::vector<BatchCopy> batches = take(loader, count, &options);
  for (BatchCopy& batch : batches) batch.transforms.clear();
  return batches;
}

const char* const kRecipes[] = {"crop:2,flip,cutout:2", "resized-crop,flip,erase:0.5", "none"};

TEST(Loader, CutsBecomeTheImagesThatTheHostMakes) {
  for (const char* words : kRecipes) {
    auto options = loader_options(8);
    options.augmentation = parse_augmentation(words);
    EXPECT_EQ(take_as(make_set(43), options, BatchOutput::cuts, 12),
              take_as(make_set(43), options, BatchOutput::images, 12))
        << words;
    options.augmentation.height = options.augmentation.width = 48;
    options.augmentation.random_crop = false;
    const auto set = std::make_shared<EncodedSet>(43);
    EXPECT_EQ(take_as(set, options, BatchOutput::cuts, 12), take_as(set, options, BatchOutput::images, 12))
        << words;
  }
}

// The cut of a sample (the pixels that it needs) is 3.5 times as large as the output here. A batch
// has room for cuts of only 2.5 times the outputs, so the host must resample some samples.
TEST(Loader, ACutWithoutRoomIsResampledOnTheHostWithTheSameBits) {
  auto options = loader_options(16);
  options.augmentation = parse_augmentation("flip,erase:0.5");
  options.augmentation.height = options.augmentation.width = 34;
  const auto set = std::make_shared<EncodedSet>(TestSet(40, {64, 64, 3}));
  options.output = BatchOutput::cuts;
  Loader loader(set, options);
  const auto batch = loader.next();
  const auto resampled = std::count_if(batch->transforms, batch->transforms + 16, [](const auto& transform) {
    return transform.rows.scale == 1 && transform.columns.scale == 1;
  });
  EXPECT_GT(resampled, 0);
  EXPECT_LT(resampled, 16);
  EXPECT_LE(batch->cut_bytes, cut_capacity(set->shape(), batch->shape, 16));
  EXPECT_EQ(take_as(set, options, BatchOutput::cuts, 6), take_as(set, options, BatchOutput::images, 6));
}

TEST(Loader, LosslessFilesGiveTheBitsOfPixels) {
  const auto pixels = make_set(43);
  const auto files = std::make_shared<EncodedSet>(*pixels);
  for (const char* words : kRecipes) {
    auto options = loader_options(8);
    options.augmentation = parse_augmentation(words);
    options.augmentation.height = 6, options.augmentation.width = 5;
    for (const auto output : {BatchOutput::images, BatchOutput::cuts})
      EXPECT_EQ(take_as(files, options, output, 12), take_as(pixels, options, output, 12)) << words;
  }
}

// For an evaluation (a test of the network), images must be decoded at full size. A JPEG decoder
// could shrink these images by 8, but the pixels would differ from Pillow's.
TEST(Loader, TestsDecodeJpegFilesAtFullSize) {
  std::vector<Bytes> jpeg, png;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    jpeg.push_back(encode_jpeg({{300, 400, 3}, random_bytes(360'000, seed)}));
    png.push_back(encode_png(decode_image(jpeg.back(), 3)));
  }
  auto options = loader_options(3);
  options.augmentation = {};
  options.augmentation.height = options.augmentation.width = 24;
  options.augmentation.resize_short = 32;
  const auto files = std::make_shared<EncodedSet>(jpeg), lossless = std::make_shared<EncodedSet>(png);
  for (const auto output : {BatchOutput::images, BatchOutput::cuts})
    EXPECT_EQ(take_as(files, options, output, 1), take_as(lossless, options, output, 1));
}

TEST(Loader, TransformsOfAResidentSetPointIntoIt) {
  const auto set = make_set(43);
  auto options = loader_options(8);
  const auto expected = take_as(set, options, BatchOutput::images, 6);
  Bytes resident;
  for (std::int64_t i = 0; i < set->size(); ++i) {
    const Bytes image = set->pixels(i);
    resident.insert(resident.end(), image.begin(), image.end());
  }
  options.output = BatchOutput::transforms;
  Loader loader(set, options);
  Augmenter augmenter(options.augmentation, set->shape(), options.mean, options.std, ImageLayout::row_major);
  for (const BatchCopy& copy : expected) {
    const auto batch = loader.next();
    std::vector<float> image(90);
    for (std::int32_t i = 0; i < batch->valid; ++i) {
      augmenter.apply(resident.data(), batch->transforms[i], image.data());
      EXPECT_TRUE(std::equal(image.begin(), image.end(), copy.images.begin() + i * 90));
    }
  }
}

TEST(Loader, ADamagedImageIsNamed) {
  const auto set = std::make_shared<EncodedSet>(20);
  set->damage(7);
  auto options = loader_options(5);
  options.order = Order::sequential;
  options.augmentation = {};
  options.augmentation.height = options.augmentation.width = 32;
  Loader loader(set, options);
  EXPECT_NO_THROW(loader.next());
  expect_error([&] { loader.next(); }, {"image 7", "JPEG"});
}

TEST(Loader, LeasedBatchesStayAsTheyAre) {
  auto options = loader_options(8);
  options.buffers = 4;
  Loader loader(make_set(43), options);
  auto first = loader.next();
  const BatchCopy copy(*first);
  for (int i = 0; i < 3; ++i) loader.next();
  EXPECT_EQ(BatchCopy(*first), copy);
  EXPECT_THROW(loader.next(), std::logic_error)
      << "its buffer is the next in the ring: waiting would be for ever";
  first.reset();
  EXPECT_NO_THROW(first = loader.next());
  EXPECT_EQ(first->position, (BatchPosition{0, 4}));
}

TEST(Loader, AnErrorInTheBackgroundReachesNext) {
  const auto set = make_set(50);
  auto options = loader_options(5);
  options.order = Order::sequential;
  options.threads = 3;
  set->bad_sample = 22;  // in the fifth batch
  Loader loader(set, options);
  for (int i = 0; i < 4; ++i) EXPECT_NO_THROW(loader.next());
  for (int i = 0; i < 2; ++i) expect_error([&] { loader.next(); }, {"set.h5", "cannot read"});
}

TEST(Loader, CanBeDestroyedAtAnyTime) {
  const auto set = make_set(500);
  for (int i = 0; i < 30; ++i) {
    auto options = loader_options(64);
    options.threads = 1 + i % 4;
    Loader loader(set, options);
    for (int step = 0; step < i % 5; ++step) loader.next();
  }
}

TEST(Loader, CountsTheTimeThatNextWaits) {
  const auto set = std::make_shared<TestSet>(4000, ImageShape{64, 64, 3});
  auto options = loader_options(400);
  Loader loader(set, options);
  loader.next();
  EXPECT_GT(loader.wait_ms(), 0);
  while (set->reads < 1200) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = loader.wait_ms();
  loader.next();  // this batch is ready, so next() does not wait
  EXPECT_LT(loader.wait_ms() - before, 1);
}

// Uses its own set, because TestSet allocates memory for every image that is read.
TEST(Loader, AWarmLoaderAllocatesNothing) {
  class Constant final : public ImageSet {
   public:
    std::int64_t size() const override { return 700; }
    ImageShape shape() const override { return {40, 40, 3}; }
    std::int32_t label(std::int64_t) const override { return 0; }
    ImageFormat format() const override { return ImageFormat::pixels; }
    std::int64_t largest_bytes() const override { return shape().bytes(); }
    std::span<const std::uint8_t> stored(std::int64_t, std::span<std::uint8_t>) const override {
      return pixels_;
    }

   private:
    Bytes pixels_ = Bytes(40 * 40 * 3, 7);
  };
  for (const char* words : {"crop,flip,cutout", "resized-crop,flip"}) {
    auto options = loader_options(64);
    options.threads = 2;
    options.augmentation = parse_augmentation(words);
    Loader loader(std::make_shared<Constant>(), options);
    for (int i = 0; i < 4; ++i) loader.next();
    const std::int64_t before = allocations;
    for (int i = 0; i < 40; ++i) loader.next();
    EXPECT_EQ(allocations - before, 0) << words;
  }
}

TEST(Loader, TakesItsBuffersFromTheCallersMemory) {
  class Counting final : public std::pmr::memory_resource {
   public:
    std::int64_t bytes = 0, most = 0;

   private:
    void* do_allocate(std::size_t size, std::size_t alignment) override {
      bytes += static_cast<std::int64_t>(size);
      most = std::max(most, bytes);
      return std::pmr::new_delete_resource()->allocate(size, alignment);
    }
    void do_deallocate(void* memory, std::size_t size, std::size_t alignment) override {
      bytes -= static_cast<std::int64_t>(size);
      std::pmr::new_delete_resource()->deallocate(memory, size, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  } memory;
  {
    auto options = loader_options(8);
    options.memory = &memory;
    Loader loader(make_set(43), options);
    const auto batch = loader.next();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch->images) % 4096, 0u);
    EXPECT_GE(memory.bytes, 3 * 8 * 90 * 4);
  }
  EXPECT_EQ(memory.bytes, 0);
}

TEST(Loader, RefusesBatchesThatCannotBe) {
  const auto set = make_set(10);
  expect_error([&] { Loader(set, loader_options(2, 0, 4)); }, {"global batch 2", "at least 4", "rank"});
  auto pairs = loader_options(6, 0, 4);
  pairs.group = 2;
  expect_error([&] { Loader(set, pairs); }, {"global batch 6", "at least 8, 2 samples", "together, a rank"});
  expect_error([&] { Loader(set, loader_options(0)); }, {"global batch 0"});
  auto late = loader_options(5);
  late.start = {0, 3};
  expect_error([&] { Loader(set, late); }, {"step 3", "0 to 2"});
  EXPECT_THROW(Loader(set, loader_options(8, 4, 4)), std::invalid_argument);
  auto few = loader_options(8);
  few.buffers = 1;
  EXPECT_THROW(Loader(set, few), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::data
