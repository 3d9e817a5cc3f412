// Tests that stores with as many images as ImageNet open fast, with every kind of HDF5 chunk index.
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "data/store/hdf5.h"
#include "data/store/store.h"
#include "tests/data/store/encoded_store.h"

namespace convoy::data {
namespace {

using namespace testing;

constexpr std::int64_t kImages = 1'281'167;
constexpr ImageShape kShape{2, 2, 3};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096 / (1 << 20);
}

std::array<std::uint8_t, 12> mark_of(std::int64_t sample) {
  std::array<std::uint8_t, 12> mark{};
  for (std::size_t i = 0; i < mark.size(); ++i)
    mark[i] = static_cast<std::uint8_t>(kernels::philox(3, static_cast<std::uint64_t>(sample)).word[i % 4] >>
                                        (i / 4 * 8));
  return mark;
}

std::vector<std::int64_t> marked() {
  return {0, 1, 63, 64, 4095, 65536, 1'000'000, kImages - 2, kImages - 1};
}

// Writes a dataset with one image per chunk. HDF5 reserves space for all chunks at once, so only
// the images that the test reads are written.
void write_pixels(hid_t file, bool unlimited) {
  const hsize_t extents[4] = {kImages, 2, 2, 3}, chunk[4] = {1, 2, 2, 3};
  const hsize_t most[4] = {unlimited ? H5S_UNLIMITED : kImages, 2, 2, 3};
  const hdf5::Handle space(H5Screate_simple(4, extents, most), H5Sclose);
  const hdf5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(creation.get(), 4, chunk);
  H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
  H5Ldelete(file, "/train/images", H5P_DEFAULT);
  const hdf5::Handle images(
      H5Dcreate2(file, "/train/images", H5T_STD_U8LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
      H5Dclose);
  ASSERT_TRUE(images);
  for (const std::int64_t sample : marked()) {
    const hsize_t at[4] = {static_cast<hsize_t>(sample), 0, 0, 0};
    ASSERT_GE(H5Dwrite_chunk(images.get(), H5P_DEFAULT, 0, at, 12, mark_of(sample).data()), 0);
  }
}

void write_encoded(hid_t file) {
  H5Ldelete(file, "/train/images", H5P_DEFAULT);
  Bytes encoded(static_cast<std::size_t>(kImages * 12));
  for (const std::int64_t sample : marked())
    std::copy_n(mark_of(sample).begin(), 12, encoded.begin() + sample * 12);
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(kImages) + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<std::int64_t>(i) * 12;
  write_bytes_dataset(file, "/train/encoded", encoded, 4096);
  write_offsets(file, "/train/offsets", offsets);
  encode_split(file, Split::test, {encode_png(smooth_image(4, 4, 3, 1))});
}

void make(const std::filesystem::path& path, bool latest, bool unlimited, bool encoded) {
  RandomStore{.shape = kShape, .train = 4, .test = 1}.write(path);
  hdf5::LibraryLock lock;
  const hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.get(), latest ? H5F_LIBVER_V110 : H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
  const hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
  if (encoded) {
    write_encoded(file.get());
  } else {
    write_pixels(file.get(), unlimited);
  }
  std::vector<std::int32_t> labels(static_cast<std::size_t>(kImages));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 4);
  write_dataset(file.get(), "/train/labels", H5T_STD_I32LE, H5T_NATIVE_INT32, labels);
}

class LargeStore : public ::testing::TestWithParam<std::tuple<bool, bool, bool, std::int64_t>> {};

TEST_P(LargeStore, OpensAtOnce) {
  const auto [latest, unlimited, encoded, resident_bytes] = GetParam();
  const TemporaryFolder folder;
  make(folder / "store.h5", latest, unlimited, encoded);
  const double start = cpu_seconds(), before = resident_mib();
  const auto set = Store(folder / "store.h5", resident_bytes).split(Split::train);
  const double seconds = cpu_seconds() - start, mib = resident_mib() - before;
  RecordProperty("cpu_milliseconds", static_cast<int>(seconds * 1000));
  RecordProperty("resident_mib", static_cast<int>(mib));
  EXPECT_LT(seconds, 3);
  EXPECT_LT(mib, 200);
  ASSERT_EQ(set->size(), kImages);
  Bytes scratch(static_cast<std::size_t>(set->largest_bytes()));
  for (const std::int64_t sample : marked()) {
    const auto stored = set->stored(sample, scratch);
    EXPECT_TRUE(std::ranges::equal(stored, mark_of(sample))) << sample;
  }
}

// The parameters are: newest HDF5 format, unlimited extent, encoded images, resident_bytes. All
// images take 15 MiB, so they fit into the larger resident_bytes.
INSTANTIATE_TEST_SUITE_P(Kinds, LargeStore,
                         ::testing::Values(std::tuple(false, false, false, 0),
                                           std::tuple(true, false, false, 0),
                                           std::tuple(true, true, false, 0),
                                           std::tuple(false, false, true, 0),
                                           std::tuple(false, false, false, 1 << 30)));

}  // namespace
}  // namespace convoy::data
