// Tests HDF5 files of other programs in every layout: the store must read what h5py reads.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "data/store/hdf5.h"
#include "data/store/store.h"
#include "tests/data/python.h"
#include "tests/data/support.h"

namespace {
bool locks_work = true;
}  // namespace

// Replaces the system's flock(), also for HDF5, to imitate a file system without locks.
extern "C" int flock(int descriptor, int operation) {
  if (locks_work) return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
  errno = ENOLCK;
  return -1;
}

namespace convoy::data {
namespace {

using namespace testing;

template <typename T>
std::vector<T> read_values(const std::filesystem::path& file) {
  const Bytes bytes = read_bytes(file);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

Bytes all_of(const ImageSet& set, std::mt19937& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(set.size()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Bytes> images(order.size());
  Bytes scratch(static_cast<std::size_t>(set.largest_bytes()));
  for (const std::int64_t sample : order) {
    const auto image = set.stored(sample, scratch);
    images[static_cast<std::size_t>(sample)].assign(image.begin(), image.end());
  }
  Bytes all;
  for (const Bytes& image : images) all.insert(all.end(), image.begin(), image.end());
  return all;
}

// Checks the sizes of the store's encoded images. `offsets` holds the byte at which each image
// begins and the end of the last one, first for the training split, then for the test split.
void expect_lengths(const Store& store, const std::vector<std::int64_t>& offsets) {
  std::size_t at = 0;
  for (const Split split : {Split::train, Split::test}) {
    const auto set = store.split(split);
    Bytes scratch(static_cast<std::size_t>(set->largest_bytes()));
    for (std::int64_t i = 0; i < set->size(); ++i, ++at)
      EXPECT_EQ(static_cast<std::int64_t>(set->stored(i, scratch).size()), offsets[at + 1] - offsets[at]);
    ++at;
  }
}

void expect_as_h5py_reads(const std::filesystem::path& file, std::int64_t resident_bytes,
                          std::mt19937& random) {
  SCOPED_TRACE(file.string());
  const std::string name = file.string();
  const Store store(file, resident_bytes);
  std::string classes;
  for (const std::string& label : store.info().classes) classes += label + "\n";
  const Bytes expected_classes = read_bytes(name + ".classes");
  EXPECT_EQ(classes, std::string(expected_classes.begin(), expected_classes.end()));
  auto labels = store.labels(Split::train);
  labels.insert(labels.end(), store.labels(Split::test).begin(), store.labels(Split::test).end());
  EXPECT_EQ(labels, read_values<std::int32_t>(name + ".labels"));
  for (const Split split : {Split::train, Split::test}) {
    const auto set = store.split(split);
    EXPECT_TRUE(all_of(*set, random) == read_bytes(name + "." + name_of(split))) << name_of(split);
    EXPECT_EQ(set->format(), store.info().format);
  }
  for (const float value : store.info().mean) EXPECT_TRUE(value == 0.375f || value == 1.0f) << value;
  if (store.info().format == ImageFormat::encoded) {
    EXPECT_EQ(store.info().shape.height, 0);
    expect_lengths(store, read_values<std::int64_t>(name + ".offsets"));
  }
}

class Layouts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!python_has("h5py")) GTEST_SKIP() << "h5py is not installed (apt-get install python3-h5py)";
  }
  TemporaryFolder folder_;
};

TEST_F(Layouts, OfEveryKindAreReadAsH5pyReadsThem) {
  run_python("store/random_stores.py", folder_.path(), "1 150");
  std::mt19937 random(1);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.path().extension() != ".h5" || entry.path().filename().string().starts_with("lzf")) continue;
    ++files;
    for (const std::int64_t resident : {std::int64_t{0}, std::int64_t{4000}, Store::kDefaultResidentBytes})
      expect_as_h5py_reads(entry.path(), resident, random);
  }
  EXPECT_EQ(files, 150);
  for (const std::int64_t resident : {std::int64_t{0}, Store::kDefaultResidentBytes}) {
    for (const std::string name : {"images", "labels"}) {
      expect_error([&] { Store(folder_ / ("lzf_" + name + ".h5"), resident).split(Split::train); },
                   {"lzf_" + name + ".h5: /train/" + name, "filter 32000 (lzf)", "does not have"});
    }
  }
}

TEST_F(Layouts, AFileSystemWithoutLocksIsNoObstacle) {
  RandomStore().write(folder_ / "store.h5");
  locks_work = false;
  EXPECT_NO_THROW(Store(folder_ / "store.h5", 0).split(Split::train));
  EXPECT_NO_THROW(RandomStore().write(folder_ / "second.h5"));
  locks_work = true;
  EXPECT_EQ(read_bytes(folder_ / "second.h5"), read_bytes(folder_ / "store.h5"));
}

TEST_F(Layouts, AFileThatIsBeingWrittenIsRefused) {
  RandomStore().write(folder_ / "store.h5");
  hdf5::LibraryLock lock;
  const hdf5::Handle writer(H5Fopen((folder_ / "store.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  ASSERT_TRUE(writer);
  expect_error([&] { const Store store(folder_ / "store.h5"); },
               {"store.h5: cannot open", "another process has locked it"});
}

}  // namespace
}  // namespace convoy::data
