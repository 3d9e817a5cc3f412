#include "data/store/store.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <stdexcept>

#include "data/store/hdf5.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

Bytes pixels_of(const ImageSet& set) {
  Bytes all;
  Bytes scratch(static_cast<std::size_t>(set.largest_bytes()));
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const auto image = set.stored(i, scratch);
    all.insert(all.end(), image.begin(), image.end());
  }
  return all;
}

TEST(Store, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  // The images of the second shape (30,000 bytes each) fill several chunks and part of the last
  // one.
  for (const ImageShape shape : {ImageShape{6, 5, 3}, ImageShape{100, 100, 3}, ImageShape{9, 7, 1}}) {
    const RandomStore made{.shape = shape, .train = 300, .test = 11};
    made.write(folder / "store.h5");
    const Store store(folder / "store.h5");
    EXPECT_EQ(store.info().shape, shape);
    EXPECT_EQ(store.info().classes, made.class_names());
    for (const Split split : {Split::train, Split::test}) {
      EXPECT_EQ(store.labels(split), made.labels(split));
      EXPECT_EQ(pixels_of(*store.split(split)), made.pixels(split)) << shape.to_string();
    }
  }
}

TEST(Store, ReadsTheSameFromMemoryFromTheFileAndThroughHdf5) {
  const TemporaryFolder folder;
  const RandomStore made{.shape = {50, 50, 3}, .train = 200};
  made.write(folder / "plain.h5");
  const Store resident(folder / "plain.h5"), on_disk(folder / "plain.h5", 0);
  EXPECT_EQ(pixels_of(*resident.split(Split::train)), made.pixels(Split::train));
  EXPECT_EQ(pixels_of(*on_disk.split(Split::train)), made.pixels(Split::train));
  // A split must stay readable after the store is gone. Reading it twice must give the same object.
  auto split = Store(folder / "plain.h5", 0).split(Split::test);
  EXPECT_EQ(pixels_of(*split), made.pixels(Split::test));
  EXPECT_EQ(resident.split(Split::train), resident.split(Split::train));
}

// Files of other programs may be compressed, have chunks that divide images, or be contiguous.
TEST(Store, ReadsOtherLayoutsOfTheSameData) {
  const TemporaryFolder folder;
  const RandomStore made{.shape = {8, 8, 3}, .train = 64};
  const Bytes pixels = made.pixels(Split::train);
  const hsize_t extents[4] = {64, 8, 8, 3}, whole[4] = {16, 8, 8, 3}, cut[4] = {64, 8, 4, 1};
  for (const int variant : {0, 1, 2}) {
    made.write(folder / "store.h5");
    {
      hdf5::LibraryLock lock;
      const hdf5::Handle file(H5Fopen((folder / "store.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
      const hdf5::Handle space(H5Screate_simple(4, extents, nullptr), H5Sclose);
      const hdf5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      if (variant != 0) H5Pset_chunk(creation.get(), 4, variant == 1 ? whole : cut);
      if (variant == 1) H5Pset_deflate(creation.get(), 4);
      H5Ldelete(file.get(), "/train/images", H5P_DEFAULT);
      const hdf5::Handle images(H5Dcreate2(file.get(), "/train/images", H5T_STD_U8LE, space.get(),
                                           H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                                H5Dclose);
      ASSERT_GE(H5Dwrite(images.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, pixels.data()), 0);
    }
    for (const std::int64_t resident : {std::int64_t{0}, std::int64_t{1} << 30}) {
      const Store store(folder / "store.h5", resident);
      EXPECT_EQ(store.chunk_images(Split::train), variant == 0 ? 0 : variant == 1 ? 16 : 64);
      EXPECT_EQ(pixels_of(*store.split(Split::train)), pixels) << variant << " " << resident;
    }
  }
}

TEST(Store, StatisticsAreThoseOfTheTrainingImages) {
  const TemporaryFolder folder;
  RandomStore made{.shape = {5, 4, 3}, .train = 50};
  made.write(folder / "store.h5");
  const Store store(folder / "store.h5");
  const Bytes pixels = made.pixels(Split::train);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    const double count = static_cast<double>(pixels.size()) / 3;
    for (std::size_t i = c; i < pixels.size(); i += 3) sum += pixels[i] / 255.0;
    const double mean = sum / count;
    for (std::size_t i = c; i < pixels.size(); i += 3) squares += std::pow(pixels[i] / 255.0 - mean, 2);
    EXPECT_NEAR(store.info().mean[c], mean, 1e-6);
    EXPECT_NEAR(store.info().std[c], std::sqrt(squares / count), 1e-6);
  }
}

TEST(Store, AConstantChannelDoesNotGiveAnInfiniteScale) {
  const TemporaryFolder folder;
  StoreWriter writer(folder / "store.h5", {2, 2, 1}, {"a"}, {1, 1});
  const Bytes grey(4, 100);
  const std::vector<std::int32_t> labels{0};
  writer.write(Split::train, 0, grey, labels);
  writer.write(Split::test, 0, grey, labels);
  writer.finish();
  const Store store(folder / "store.h5");
  EXPECT_GT(store.info().std[0], 0.001f);
}

TEST(Store, RowsMayComeInAnyOrderAndMissingOnesAreClosedUp) {
  const TemporaryFolder folder;
  const RandomStore made{.shape = {90, 90, 3}, .train = 100, .test = 3};
  const Bytes pixels = made.pixels(Split::train);
  const auto labels = made.labels(Split::train);
  const auto image_bytes = static_cast<std::size_t>(made.shape.bytes());
  const auto left_out = [](std::int64_t i) { return i == 0 || i == 99 || i % 7 == 3 || (i > 40 && i < 60); };
  Bytes expected;
  std::vector<std::int32_t> expected_labels;
  {
    StoreWriter writer(folder / "store.h5", made.shape, made.class_names(), {100, 3});
    writer.write(Split::test, 0, made.pixels(Split::test), made.labels(Split::test));
    for (std::int64_t k = 0; k < 100; ++k) {
      const std::int64_t i = k * 37 % 100;
      if (left_out(i)) continue;
      const auto row = static_cast<std::size_t>(i);
      writer.write(Split::train, i, std::span(pixels).subspan(row * image_bytes, image_bytes),
                   std::span(labels).subspan(row, 1));
    }
    writer.finish();
  }
  for (std::int64_t i = 0; i < 100; ++i) {
    if (left_out(i)) continue;
    const auto begin = pixels.begin() + i * made.shape.bytes();
    expected.insert(expected.end(), begin, begin + made.shape.bytes());
    expected_labels.push_back(labels[static_cast<std::size_t>(i)]);
  }
  const Store store(folder / "store.h5", 0);
  EXPECT_EQ(store.labels(Split::train), expected_labels);
  EXPECT_EQ(pixels_of(*store.split(Split::train)), expected);
}

TEST(Store, EqualDataGiveEqualFiles) {
  const TemporaryFolder folder;
  RandomStore().write(folder / "a.h5");
  ::sleep(1);  // HDF5 timestamps have seconds
  RandomStore().write(folder / "b.h5");
  EXPECT_TRUE(read_bytes(folder / "a.h5") == read_bytes(folder / "b.h5"));
}

TEST(Store, HoldsMoreClassNamesThanAnHdf5HeaderTakes) {
  const TemporaryFolder folder;
  const RandomStore made{.train = 8, .classes = 20000};
  made.write(folder / "store.h5");
  EXPECT_EQ(Store(folder / "store.h5").info().classes, made.class_names());
}

TEST(Store, InfoTravelsAsBytes) {
  StoreInfo info{{0, 0, 3}, ImageFormat::encoded, {100, 20}, {"a", "", "ünï"}, {0.1f, 0.2f, 0.3f}, {1, 2, 3}};
  const std::string bytes = info.to_bytes();
  EXPECT_EQ(StoreInfo::from_bytes(bytes), info);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(StoreInfo::from_bytes(std::string_view(bytes).substr(0, length)), std::runtime_error);
  }
}

// Images are stored class after class, so the first images alone would be of one class.
TEST(Store, LimitTakesTheFirstOfEveryClass) {
  class Sorted final : public ImageSet {
   public:
    std::int64_t size() const override { return 40; }
    ImageShape shape() const override { return {1, 1, 1}; }
    std::int32_t label(std::int64_t sample) const override { return sample < 30 ? 0 : sample < 32 ? 1 : 2; }
    ImageFormat format() const override { return ImageFormat::pixels; }
    std::int64_t largest_bytes() const override { return 1; }
    std::span<const std::uint8_t> stored(std::int64_t sample,
                                         std::span<std::uint8_t> scratch) const override {
      scratch[0] = static_cast<std::uint8_t>(sample);
      return scratch.first(1);
    }
  };
  const auto whole = std::make_shared<Sorted>();
  EXPECT_EQ(limit(whole, 0), whole);
  EXPECT_EQ(limit(whole, 40), whole);
  const auto chosen = [&](std::int64_t count) { return pixels_of(*limit(whole, count)); };
  EXPECT_EQ(chosen(3), (Bytes{0, 30, 32}));
  EXPECT_EQ(chosen(7), (Bytes{0, 1, 2, 30, 31, 32, 33}));  // the second class has no third image
  EXPECT_EQ(chosen(10), (Bytes{0, 1, 2, 3, 30, 31, 32, 33, 34, 35}));
  EXPECT_EQ(limit(whole, 3)->label(1), 1);
}

// ---- failures while writing ----

TEST(StoreWriter, NamesAPlaceThatCannotBeWritten) {
  expect_error([] { RandomStore().write("/proc/no/store.h5"); }, {"/proc/no/store.h5", "cannot create"});
}

TEST(StoreWriter, AnAbandonedFileLeavesTheOldOne) {
  const TemporaryFolder folder;
  RandomStore().write(folder / "store.h5");
  const Bytes before = read_bytes(folder / "store.h5");
  {
    const RandomStore other{.seed = 5};
    StoreWriter writer(folder / "store.h5", other.shape, other.class_names(), {other.train, other.test});
    writer.write(Split::train, 0, other.pixels(Split::train), other.labels(Split::train));
  }
  EXPECT_EQ(read_bytes(folder / "store.h5"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

// Limits the size of files to imitate a full disk, because write() fails in the same way.
TEST(StoreWriter, AFullDiskIsReportedAndLeavesTheOldFile) {
  const TemporaryFolder folder;
  RandomStore().write(folder / "store.h5");
  const Bytes before = read_bytes(folder / "store.h5");
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t limit : {rlim_t{0}, rlim_t{2000}, rlim_t{100'000}, rlim_t{500'000}}) {
    const rlimit small{limit, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    expect_error(
        [&] {
          RandomStore{.shape = {64, 64, 3}, .train = 60}.write(folder / "store.h5");
        },
        {(folder / "store.h5").string(), "cannot ", ": File too large"});
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_EQ(read_bytes(folder / "store.h5"), before);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  }
}

TEST(StoreWriter, RefusesWhatCannotBeAStore) {
  const TemporaryFolder folder;
  const auto path = folder / "store.h5";
  EXPECT_THROW(StoreWriter(path, {0, 5, 3}, {"a"}, {1, 1}), std::invalid_argument);
  EXPECT_THROW(StoreWriter(path, {5, 5, 3}, {}, {1, 1}), std::invalid_argument);
  EXPECT_THROW(StoreWriter(path, {5, 5, 3}, {"a"}, {1, 0}), std::invalid_argument);
  expect_error(
      [&] {
        StoreWriter(path, {5, 5, 3}, {"a", "b", "b"}, {1, 1});
      },
      {path.string(), "class 'b' for the labels 1 and 2"});
  StoreWriter writer(path, {1, 1, 1}, {"a", "b"}, {2, 1});
  const Bytes pixel{1};
  const std::vector<std::int32_t> two{2}, minus{-1}, one{1}, both{0, 1};
  EXPECT_THROW(writer.write(Split::train, 0, pixel, two), std::invalid_argument);
  EXPECT_THROW(writer.write(Split::train, 0, pixel, minus), std::invalid_argument);
  EXPECT_THROW(writer.write(Split::train, 2, pixel, one), std::invalid_argument);
  EXPECT_THROW(writer.write(Split::train, 0, pixel, both), std::invalid_argument);
  writer.write(Split::train, 0, pixel, one);
  expect_error([&] { writer.finish(); }, {path.string(), "no test images"});
}

}  // namespace
}  // namespace convoy::data
