#include "tests/data/store/encoded_store.h"

#include <algorithm>

#include "data/image/image_decoder.h"
#include "data/store/store.h"

namespace convoy::data {
namespace {

using namespace testing;

class EncodedStore : public ::testing::Test {
 protected:
  EncodedStore() : file_(folder_ / "store.h5") {
    for (int i = 0; i < 9; ++i) {
      pictures_.push_back(smooth_image(20 + 3 * i, 40 - 2 * i, 3, i));
      images_.push_back(i % 2 == 0 ? encode_png(pictures_.back()) : encode_jpeg(pictures_.back()));
    }
    write();
  }
  void write(hsize_t chunk = 0) {
    RandomStore{.shape = {2, 2, 3}, .train = 9, .test = 3}.write(file_);
    edit([&](hid_t file) {
      encode_split(file, Split::train, images_, chunk);
      encode_split(file, Split::test, {images_[0], images_[1], images_[2]}, chunk);
    });
  }
  void edit(const std::function<void(hid_t)>& change) {
    hdf5::LibraryLock lock;
    const hdf5::Handle file(H5Fopen(file_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    ASSERT_TRUE(file);
    change(file.get());
  }
  void expect(std::vector<std::string> words) {
    words.push_back(file_.string());
    expect_error([&] { Store store(file_); }, words);
    write();
  }

  TemporaryFolder folder_;
  std::filesystem::path file_;
  std::vector<Image> pictures_;
  std::vector<Bytes> images_;
};

TEST_F(EncodedStore, GivesBackTheFiles) {
  for (const hsize_t chunk : {0, 100, 1, 500}) {  // some images span several chunks
    write(chunk);
    for (const std::int64_t resident : {std::int64_t{0}, Store::kDefaultResidentBytes}) {
      const Store store(file_, resident);
      EXPECT_EQ(store.info().shape, (ImageShape{0, 0, 3}));
      EXPECT_EQ(store.info().format, ImageFormat::encoded);
      EXPECT_EQ(store.info().size, (std::array<std::int64_t, 2>{9, 3}));
      const auto set = store.split(Split::train);
      Bytes scratch(static_cast<std::size_t>(set->largest_bytes()));
      std::size_t largest = 0;
      for (std::int64_t i = 0; i < 9; ++i) {
        const Bytes& expected = images_[static_cast<std::size_t>(i)];
        const auto stored = set->stored(i, scratch);
        EXPECT_TRUE(std::equal(stored.begin(), stored.end(), expected.begin(), expected.end())) << i;
        EXPECT_EQ(set->stored_bytes(i), static_cast<std::int64_t>(expected.size()));
        largest = std::max(largest, expected.size());
      }
      EXPECT_EQ(set->largest_bytes(), static_cast<std::int64_t>(largest));
      EXPECT_EQ(set->name(5), file_.string() + ": /train/encoded: image 5");
      EXPECT_EQ(limit(set, 4)->format(), ImageFormat::encoded);
      EXPECT_EQ(limit(set, 4)->largest_bytes(), set->largest_bytes());
    }
  }
}

TEST_F(EncodedStore, IsDecodedImageByImage) {
  const Store store(file_, 0);
  const auto set = limit(store.split(Split::train), 5);
  Bytes scratch(static_cast<std::size_t>(set->largest_bytes()));
  ImageDecoder decoder(set->format(), set->shape());
  for (std::int64_t i = 0; i < 5; ++i) {
    const Image& picture = pictures_[static_cast<std::size_t>(i)];
    ASSERT_EQ(decoder.open(set->stored(i, scratch)), picture.shape);
    Bytes pixels(static_cast<std::size_t>(picture.shape.bytes()));
    decoder.read({0, 0, static_cast<std::int32_t>(picture.shape.width),
                  static_cast<std::int32_t>(picture.shape.height)},
                 1, pixels.data());
    EXPECT_TRUE(pixels == decode_image(images_[static_cast<std::size_t>(i)], 3).pixels) << i;
  }
}

TEST_F(EncodedStore, OffsetsMayBeIntegersOfAnySize) {
  edit([](hid_t file) {
    write_dataset(file, "/test/offsets", H5T_STD_U16BE, H5T_NATIVE_INT64, [&] {
      const hdf5::Handle old(H5Dopen2(file, "/test/offsets", H5P_DEFAULT), H5Dclose);
      std::vector<std::int64_t> values(4);
      H5Dread(old.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
      return values;
    }());
  });
  const auto set = Store(file_).split(Split::test);
  Bytes scratch(static_cast<std::size_t>(set->largest_bytes()));
  EXPECT_EQ(set->stored(2, scratch).size(), images_[2].size());
}

TEST_F(EncodedStore, OffsetsThatCannotBeAreRefused) {
  const auto offsets = [&](std::vector<std::int64_t> values) {
    edit([&](hid_t file) { write_offsets(file, "/test/offsets", values); });
  };
  std::int64_t end = 0;
  for (int i = 0; i < 3; ++i) end += static_cast<std::int64_t>(images_[static_cast<std::size_t>(i)].size());
  offsets({1, 10, 20, end});
  expect({"/test/offsets", "from 1 to", "expected from 0 to " + std::to_string(end)});
  offsets({0, 10, 20, end - 1});
  expect({"/test/offsets", "expected from 0 to", "/test/encoded"});
  offsets({0, 20, 10, end});
  expect({"/test/offsets", "image 1 from 20 to 10", "do not descend"});
  offsets({0, -5, 10, end});
  expect({"/test/offsets", "image 0 from 0 to -5"});
  offsets({0});
  expect({"/test/offsets", "1 values", "one more than there are images"});
  offsets({0, 10, end});
  expect({"/test/labels", "3 labels, expected 2 as in /test/encoded"});
}

TEST_F(EncodedStore, WhatIsMixedOrMissingIsRefused) {
  edit([](hid_t file) { H5Ldelete(file, "/train/offsets", H5P_DEFAULT); });
  expect({"/train/offsets", "missing", "expected a dataset of integers of rank 1 [N + 1]"});
  edit([&](hid_t file) {
    H5Lcreate_hard(file, "/test/encoded", file, "/test/images", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect({"/test has images and encoded, expected one of them"});
  edit([](hid_t file) { write_dataset(file, "/test/encoded", H5T_STD_I16LE, H5T_NATIVE_UINT8, Bytes(100)); });
  expect({"/test/encoded", "int16", "expected a dataset of uint8 of rank 1 [bytes]"});
  RandomStore{.shape = {2, 2, 3}, .train = 9, .test = 3}.write(file_);
  edit([&](hid_t file) { encode_split(file, Split::test, {images_[0], images_[1], images_[2]}); });
  expect({"/test/encoded", "expected the same kind of images as /train/images"});
}

TEST_F(EncodedStore, ImagesHaveOneOrThreeChannels) {
  const auto statistics = [&](const std::vector<float>& values) {
    edit([&](hid_t file) {
      for (const char* name : {"mean", "std"}) {
        H5Adelete(file, name);
        const hsize_t count = values.size();
        const hdf5::Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
        const hdf5::Handle made(H5Acreate2(file, name, H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                                H5Aclose);
        H5Awrite(made.get(), H5T_NATIVE_FLOAT, values.data());
      }
    });
  };
  statistics({0.5f});
  EXPECT_EQ(Store(file_).info().shape.channels, 1);
  statistics({0.5f, 0.5f});
  expect({"attribute mean", "[0.5, 0.5]", "expected 1 or 3 numbers"});
}

}  // namespace
}  // namespace convoy::data
