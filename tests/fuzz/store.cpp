// Defines the fuzz target for HDF5 stores. The first byte of the input chooses a valid store of
// encoded images. Each 4 bytes after that change one byte of the store.
#include "data/store/store.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/data/store/encoded_store.h"
#include "tests/data/support.h"
#include "tests/fuzz/targets.h"

namespace convoy::data::fuzz {
namespace {

using testing::encode_jpeg;
using testing::encode_png;

const std::vector<Bytes>& good_stores() {
  static const std::vector<Bytes> stores = [] {
    std::vector<Bytes> result;
    const testing::TemporaryFolder folder;
    for (const hsize_t chunk : {0, 64, 500}) {
      testing::RandomStore{.shape = {1, 1, 3}, .train = 1, .test = 1, .classes = 4}.write(folder /
                                                                                          "store.h5");
      {
        hdf5::LibraryLock lock;
        const hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_LATEST);
        const hdf5::Handle file(H5Fopen((folder / "store.h5").c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
        const Image picture = testing::smooth_image(5, 7, 3, 1);
        testing::encode_split(file.get(), Split::train,
                              {encode_png(picture), encode_jpeg(picture), encode_png(picture)}, chunk);
        testing::encode_split(file.get(), Split::test, {encode_jpeg(picture)}, chunk);
      }
      result.push_back(testing::read_bytes(folder / "store.h5"));
    }
    return result;
  }();
  return stores;
}

void read_all(const Store& store) {
  for (const Split split : {Split::train, Split::test}) {
    const auto set = store.split(split);
    if (set->largest_bytes() > 1 << 24) continue;
    Bytes scratch(static_cast<std::size_t>(set->largest_bytes()));
    for (std::int64_t i = 0; i < set->size(); ++i) set->stored(i, scratch);
  }
}

}  // namespace

std::vector<Bytes> store_seeds() {
  std::vector<Bytes> seeds{{0}, {1}, {2}};
  for (std::uint8_t i = 0; i < 3; ++i)
    for (std::uint8_t k = 0; k < 8; ++k) seeds.push_back({i, k, static_cast<std::uint8_t>(k * 37), 0, k});
  return seeds;
}

bool run_store(std::span<const std::uint8_t> input) {
  static const int descriptor = ::memfd_create("store", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  if (input.empty()) return false;
  Bytes file = good_stores()[input[0] % good_stores().size()];
  for (std::size_t i = 1; i + 4 <= input.size(); i += 4) {
    const std::size_t at = input[i] | input[i + 1] << 8 | input[i + 2] << 16;
    file[at % file.size()] = input[i + 3];
  }
  if (::ftruncate(descriptor, static_cast<off_t>(file.size())) != 0 ||
      ::pwrite(descriptor, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size()))
    std::abort();
  return attempt([&] { read_all(Store(path, input[0] / 3 % 2 == 0 ? 0 : 1 << 20)); });
}

}  // namespace convoy::data::fuzz
