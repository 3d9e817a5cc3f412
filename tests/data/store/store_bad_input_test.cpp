// Tests files that are damaged or are no stores. Each must be refused with one line that says what
// is wrong and where.
#include <fmt/format.h>

#include <random>
#include <stdexcept>

#include "data/store/hdf5.h"
#include "data/store/store.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

class BadStore : public ::testing::Test {
 protected:
  BadStore() : file_(folder_ / "store.h5") { RandomStore().write(file_); }

  // Opens the store with HDF5 and passes it to `change`.
  void edit(const std::function<void(hid_t)>& change) {
    hdf5::LibraryLock lock;
    const hdf5::Handle file(H5Fopen(file_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    change(file.get());
  }
  static void replace(hid_t file, const char* path, hid_t type, const std::vector<hsize_t>& extents) {
    H5Ldelete(file, path, H5P_DEFAULT);
    const hdf5::Handle space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                             H5Sclose);
    const hdf5::Handle made(H5Dcreate2(file, path, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                            H5Dclose);
    ASSERT_TRUE(made) << path;
  }
  static void write_labels(hid_t file, const char* path, const std::vector<std::int32_t>& labels) {
    replace(file, path, H5T_STD_I32LE, {labels.size()});
    const hdf5::Handle dataset(H5Dopen2(file, path, H5P_DEFAULT), H5Dclose);
    H5Dwrite(dataset.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data());
  }
  static void replace_floats(hid_t file, const char* name, const std::vector<float>& values) {
    H5Adelete(file, name);
    const hsize_t count = values.size();
    const hdf5::Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const hdf5::Handle made(H5Acreate2(file, name, H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                            H5Aclose);
    H5Awrite(made.get(), H5T_NATIVE_FLOAT, values.data());
  }
  void expect(std::vector<std::string> words) {
    words.push_back(file_.string());
    ::testing::internal::CaptureStderr();
    expect_error([&] { Store store(file_); }, words);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "HDF5 printed its own errors";
  }

  TemporaryFolder folder_;
  std::filesystem::path file_;
};

TEST_F(BadStore, TheGoodFileIsAccepted) { EXPECT_NO_THROW(Store store(file_)); }

TEST_F(BadStore, NoSuchFile) {
  std::filesystem::remove(file_);
  expect({"No such file"});
}

TEST_F(BadStore, AFolder) {
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);
  expect({"folder", "expected an HDF5 file"});
}

TEST_F(BadStore, NotHdf5) {
  for (const Bytes& content : {Bytes{}, Bytes{'h', 'i'}, random_bytes(5000, 1)}) {
    write_bytes(file_, content);
    expect({"not an HDF5 file"});
  }
}

TEST_F(BadStore, TruncatedAnywhere) {
  const Bytes whole = read_bytes(file_);
  for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 50) {
    write_bytes(file_, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    expect({"HDF5 file"});
  }
}

TEST_F(BadStore, SaysThatItIsTruncated) {
  Bytes whole = read_bytes(file_);
  whole.resize(whole.size() / 2);
  write_bytes(file_, whole);
  expect({"truncated"});
}

TEST_F(BadStore, ForeignHdf5File) {
  hdf5::LibraryLock lock;
  hdf5::Handle(H5Fcreate(file_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose).reset();
  expect({"/train/images", "missing", "uint8", "[N, H, W, C]"});
}

TEST_F(BadStore, MissingDatasets) {
  for (const char* path : {"/train/images", "/train/labels", "/test/images", "/test/labels", "/test"}) {
    RandomStore().write(file_);
    edit([&](hid_t file) { H5Ldelete(file, path, H5P_DEFAULT); });
    expect({path, "missing", "expected"});
  }
}

TEST_F(BadStore, AGroupInADatasetsPlace) {
  edit([](hid_t file) {
    H5Ldelete(file, "/train/labels", H5P_DEFAULT);
    hdf5::Handle(H5Gcreate2(file, "/train/labels", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose).reset();
  });
  expect({"/train/labels", "no dataset", "expected a dataset of integers"});
}

TEST_F(BadStore, WrongRank) {
  edit([](hid_t file) { replace(file, "/train/images", H5T_STD_U8LE, {40, 6, 15}); });
  expect({"/train/images", "rank 3", "expected a dataset of uint8 of rank 4"});
  RandomStore().write(file_);
  edit([](hid_t file) { replace(file, "/test/labels", H5T_STD_I32LE, {7, 1}); });
  expect({"/test/labels", "rank 2", "rank 1"});
}

TEST_F(BadStore, WrongType) {
  edit([](hid_t file) { replace(file, "/test/images", H5T_IEEE_F32LE, {7, 6, 5, 3}); });
  expect({"/test/images", "float32", "expected a dataset of uint8"});
  RandomStore().write(file_);
  edit([](hid_t file) { replace(file, "/train/images", H5T_STD_I8LE, {40, 6, 5, 3}); });
  expect({"/train/images", "int8", "expected a dataset of uint8"});
  RandomStore().write(file_);
  edit([](hid_t file) { replace(file, "/train/labels", H5T_IEEE_F64LE, {40}); });
  expect({"/train/labels", "float64", "expected a dataset of integers"});
}

TEST_F(BadStore, NoImages) {
  edit([](hid_t file) { replace(file, "/train/images", H5T_STD_U8LE, {0, 6, 5, 3}); });
  expect({"/train/images", "[0, 6, 5, 3]", "expected 1 to"});
}

TEST_F(BadStore, MoreImagesThanTheFileCouldHold) {
  edit([](hid_t file) { replace(file, "/train/images", H5T_STD_U8LE, {hsize_t{1} << 36, 6, 5, 3}); });
  expect({"/train/images", "68719476736", "expected 1 to 4294967296 images"});
  edit([](hid_t file) {
    replace(file, "/train/images", H5T_STD_U8LE, {hsize_t{1} << 31, 6, 5, 3});
    replace(file, "/train/labels", H5T_STD_I32LE, {hsize_t{1} << 31});
  });
  expect({"/train/labels", "2147483648 values in a file of", "bytes"});
}

TEST_F(BadStore, ImagesOfMoreBytesThanAThreadKeeps) {
  edit([](hid_t file) { replace(file, "/train/images", H5T_STD_U8LE, {40, 65536, 65536, 3}); });
  expect({"/train/images", "[40, 65536, 65536, 3]", "at most 1073741824 bytes"});
}

TEST_F(BadStore, AxesInTheOrderOfPyTorch) {
  edit([](hid_t file) {
    replace(file, "/train/images", H5T_STD_U8LE, {40, 3, 32, 48});
    replace(file, "/test/images", H5T_STD_U8LE, {7, 3, 32, 48});
  });
  expect({"/train/images", "shape [40, 3, 32, 48]", "[N, C, H, W]", "expected [N, H, W, C]"});
  RandomStore{.shape = {28, 28, 1}}.write(file_);
  edit([](hid_t file) { replace(file, "/test/images", H5T_STD_U8LE, {7, 1, 28, 28}); });
  expect({"/test/images", "with 1 channels", "expected [N, H, W, C]"});
  // Images with three rows and many channels must not be mistaken for [N, C, H, W].
  RandomStore{.shape = {3, 5, 12}}.write(file_);
  EXPECT_NO_THROW(Store store(file_));
}

TEST_F(BadStore, StatisticsOnTheScaleOfBytes) {
  edit([](hid_t file) { replace_floats(file, "mean", {123.7f, 116.3f, 103.5f}); });
  expect({"attribute mean", "123.7", "on the scale 0 to 255", "expected 3 numbers on the scale 0 to 1"});
  RandomStore().write(file_);
  edit([](hid_t file) { replace_floats(file, "std", {58.4f, 57.1f, 57.4f}); });
  expect({"attribute std", "58.4", "on the scale 0 to 255"});
  RandomStore().write(file_);
  edit([](hid_t file) { replace_floats(file, "mean", {0.5f, -0.1f, 0.5f}); });
  expect({"attribute mean", "-0.1", "on the scale 0 to 1"});
}

TEST_F(BadStore, ScalarsAreNoLists) {
  edit([](hid_t file) {
    H5Adelete(file, "mean");
    const hdf5::Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    hdf5::Handle(H5Acreate2(file, "mean", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose)
        .reset();
  });
  expect({"attribute mean", "rank 0", "expected 3"});
}

TEST_F(BadStore, ALinkThatLeadsNowhere) {
  edit([](hid_t file) {
    H5Ldelete(file, "/test/labels", H5P_DEFAULT);
    H5Lcreate_soft("/nowhere", file, "/test/labels", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect({"/test/labels", "a link that leads nowhere"});
  edit([](hid_t file) {
    H5Ldelete(file, "/test/images", H5P_DEFAULT);
    H5Lcreate_external("gone.h5", "/images", file, "/test/images", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect({"/test/images", "a link that leads nowhere"});
}

TEST_F(BadStore, LabelsOutOfRange) {
  for (const std::int32_t label : {4, -1, 1000}) {
    auto labels = RandomStore().labels(Split::train);
    labels[17] = label;
    edit([&](hid_t file) { write_labels(file, "/train/labels", labels); });
    expect({"/train/labels", "label " + std::to_string(label), "image 17", "0 to 3"});
  }
}

TEST_F(BadStore, CountsDiffer) {
  edit([](hid_t file) { replace(file, "/test/labels", H5T_STD_I32LE, {8}); });
  expect({"/test/labels", "8 labels", "expected 7"});
}

TEST_F(BadStore, SplitsOfDifferentShape) {
  edit([](hid_t file) { replace(file, "/test/images", H5T_STD_U8LE, {7, 5, 6, 3}); });
  expect({"/test/images", "5x6x3", "6x5x3"});
}

TEST_F(BadStore, MissingAttributes) {
  for (const char* name : {"classes", "mean", "std"}) {
    RandomStore().write(file_);
    edit([&](hid_t file) { H5Adelete(file, name); });
    expect({std::string("attribute ") + name, "missing"});
  }
}

TEST_F(BadStore, AGroupThatIsADanglingLink) {
  edit([](hid_t file) {
    H5Ldelete(file, "/test", H5P_DEFAULT);
    H5Lcreate_external("none.h5", "/test", file, "/test", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect({"/test/images: /test is a link that leads nowhere"});
}

// A missing or short file of raw data must be refused, because HDF5 would read zeros.
TEST_F(BadStore, RawDataFilesThatAreMissingOrTooShort) {
  const std::string raw = folder_ / "pixels.raw";
  edit([&](hid_t file) {
    hsize_t extents[4] = {};
    {
      const hdf5::Handle images(H5Dopen2(file, "/test/images", H5P_DEFAULT), H5Dclose);
      const hdf5::Handle space(H5Dget_space(images.get()), H5Sclose);
      H5Sget_simple_extent_dims(space.get(), extents, nullptr);
    }
    H5Ldelete(file, "/test/images", H5P_DEFAULT);
    const hdf5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_external(creation.get(), raw.c_str(), 10, H5F_UNLIMITED);
    const hdf5::Handle space(H5Screate_simple(4, extents, nullptr), H5Sclose);
    const hdf5::Handle made(
        H5Dcreate2(file, "/test/images", H5T_STD_U8LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
        H5Dclose);
    ASSERT_TRUE(made);
    write_bytes(raw, random_bytes(10 + extents[0] * extents[1] * extents[2] * extents[3], 1));
  });
  EXPECT_NO_THROW(Store(file_).split(Split::test));
  Bytes bytes = read_bytes(raw);
  bytes.pop_back();
  write_bytes(raw, bytes);
  expect({"/test/images: its raw data file", raw,
          fmt::format("{} bytes, expected {}", bytes.size(), bytes.size() + 1)});
  std::filesystem::remove(raw);
  expect({"/test/images: its raw data file", raw, "No such file"});
}

// A virtual dataset without its source must be refused, because HDF5 would read the fill value.
TEST_F(BadStore, VirtualDatasetsWithoutTheirSource) {
  edit([](hid_t file) {
    const hdf5::Handle images(H5Dopen2(file, "/test/images", H5P_DEFAULT), H5Dclose);
    const hdf5::Handle space(H5Dget_space(images.get()), H5Sclose);
    const hdf5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_virtual(creation.get(), space.get(), "source.h5", "pixels", space.get());
    H5Ldelete(file, "/test/images", H5P_DEFAULT);
    const hdf5::Handle made(
        H5Dcreate2(file, "/test/images", H5T_STD_U8LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
        H5Dclose);
    ASSERT_TRUE(made);
  });
  expect({"/test/images: a virtual dataset whose source pixels of source.h5 cannot be read"});
  RandomStore().write(folder_ / "source.h5");
  expect({"/test/images: a virtual dataset whose source pixels of source.h5 cannot be read"});
  {
    hdf5::LibraryLock lock;
    const hdf5::Handle source(H5Fopen((folder_ / "source.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    H5Lmove(source.get(), "/test/images", source.get(), "/pixels", H5P_DEFAULT, H5P_DEFAULT);
  }
  EXPECT_NO_THROW(Store(file_).split(Split::test));
}

// Labels may be an enumeration: h5py writes bool as one.
TEST_F(BadStore, LabelsMayBeAnEnumeration) {
  edit([](hid_t file) {
    const hdf5::Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
    std::vector<std::int8_t> labels(RandomStore().test);
    for (std::int8_t value : {0, 1}) H5Tenum_insert(type.get(), value == 0 ? "FALSE" : "TRUE", &value);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int8_t>(i % 2);
    replace(file, "/test/labels", type.get(), {labels.size()});
    const hdf5::Handle dataset(H5Dopen2(file, "/test/labels", H5P_DEFAULT), H5Dclose);
    H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data());
  });
  const auto labels = Store(file_).labels(Split::test);
  for (std::size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(labels[i], static_cast<std::int32_t>(i % 2));
}

TEST_F(BadStore, WrongStatistics) {
  edit([](hid_t file) { replace_floats(file, "mean", {0.5f}); });
  expect({"attribute mean", "[0.5]", "expected 3"});
  edit([](hid_t file) { replace_floats(file, "mean", {0.5f, NAN, 0.5f}); });
  expect({"attribute mean", "nan", "on the scale 0 to 1"});
  RandomStore().write(file_);
  edit([](hid_t file) { replace_floats(file, "std", {0.5f, 0, 0.5f}); });
  expect({"attribute std", "positive"});
}

TEST_F(BadStore, ClassesThatAreNumbers) {
  edit([](hid_t file) { replace_floats(file, "classes", {1, 2, 3}); });
  expect({"attribute classes", "float32", "class names"});
}

TEST_F(BadStore, ClassesOfTheSameName) {
  for (const bool variable : {true, false}) {
    edit([&](hid_t file) {
      H5Adelete(file, "classes");
      const hsize_t count = 3;
      const hdf5::Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
      const hdf5::Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
      H5Tset_size(type.get(), variable ? H5T_VARIABLE : 4);
      const hdf5::Handle made(H5Acreate2(file, "classes", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                              H5Aclose);
      const char* const names[] = {"ant", "bee", "ant"};
      H5Awrite(made.get(), type.get(), variable ? static_cast<const void*>(names) : "ant\0bee\0ant\0");
    });
    expect({"attribute classes", "class 'ant' for the labels 0 and 2", "a name of its own"});
  }
}

// Whichever byte is damaged, the file must be read or refused without a crash.
TEST_F(BadStore, SurvivesFlippedBytes) {
  RandomStore{.shape = {2, 2, 1}, .train = 6, .test = 2}.write(file_);
  const Bytes whole = read_bytes(file_);
  std::mt19937 random(7);
  int refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Bytes damaged = whole;
    for (int flips = 0; flips < 3; ++flips)
      damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    write_bytes(file_, damaged);
    try {
      const Store store(file_, trial % 2 == 0 ? 0 : 1 << 20);
      Bytes scratch(4);
      for (const Split split : {Split::train, Split::test}) store.split(split)->stored(0, scratch);
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 40);
}

}  // namespace
}  // namespace convoy::data
