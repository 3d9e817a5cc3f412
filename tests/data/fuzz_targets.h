// What is fuzzed: readers of files that others made. An input must be read or refused with
// std::runtime_error; fuzz_test.cpp runs some inputs in every build, fuzz_main.cpp hands them to
// libFuzzer.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/image/image_decoder.h"
#include "data/store/store.h"
#include "tests/data/encoded_store.h"
#include "tests/data/jpeg_kinds.h"

namespace convoy::data::testing {

struct FuzzTarget {
  std::string name;
  std::vector<Bytes> seeds;
  std::function<void(std::span<const std::uint8_t>)> run;
};

// ---- ImageDecoder: 8 bytes say which region, at which reduction and channels; a file follows ----

inline constexpr std::size_t kRegionBytes = 8;

inline std::vector<Bytes> image_seeds() {
  std::vector<Bytes> files;
  std::uint64_t seed = 0;
  for (const JpegKind& kind : jpeg_kinds())
    files.push_back(kind.encode(detailed_image(33, 47, kind.components, ++seed)));
  for (const int channels : {1, 3, 4}) files.push_back(encode_png(smooth_image(9, 11, channels, 1)));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Bytes region = random_bytes(kRegionBytes, i);
    files[i].insert(files[i].begin(), region.begin(), region.end());
  }
  return files;
}

inline bool try_read(ImageDecoder& decoder, std::span<const std::uint8_t> file, Window region, int reduction,
                     Bytes& pixels) {
  try {
    decoder.open(file);
    decoder.read(region, reduction, pixels.data());
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

// A region must be a part of the whole if both can be read.
inline void run_image(std::span<const std::uint8_t> input) {
  static ImageDecoder colour(ImageFormat::encoded, {0, 0, 3}), grey(ImageFormat::encoded, {0, 0, 1});
  if (input.size() < kRegionBytes) return;
  const auto file = input.subspan(kRegionBytes);
  ImageDecoder& decoder = input[0] % 2 == 0 ? colour : grey;
  ImageShape shape;
  try {
    shape = decoder.open(file);
  } catch (const std::runtime_error&) {
    return;
  }
  if (shape.height * shape.width > 1 << 18) return;  // for speed
  const int reduction = 1 << (input[1] % (decoder.reduction(8) == 8 ? 4 : 1));
  const auto height = static_cast<std::int32_t>((shape.height + reduction - 1) / reduction);
  const auto width = static_cast<std::int32_t>((shape.width + reduction - 1) / reduction);
  Window region{input[2] * 257 % width, input[3] * 257 % height, 0, 0};
  region.width = 1 + input[4] * 257 % (width - region.x);
  region.height = 1 + input[5] * 257 % (height - region.y);
  Bytes part(static_cast<std::size_t>(region.width * shape.channels) *
             static_cast<std::size_t>(region.height));
  if (!try_read(decoder, file, region, reduction, part)) return;
  Bytes whole(static_cast<std::size_t>(width * shape.channels) * static_cast<std::size_t>(height));
  if (!try_read(decoder, file, {0, 0, width, height}, reduction, whole)) return;
  const auto row = static_cast<std::size_t>(region.width * shape.channels);
  for (std::int32_t y = 0; y < region.height; ++y) {
    const auto from = static_cast<std::size_t>(((region.y + y) * width + region.x) * shape.channels);
    if (std::memcmp(part.data() + static_cast<std::size_t>(y) * row, whole.data() + from, row) == 0) continue;
    std::fprintf(stderr,
                 "region %dx%d at %d, %d of %dx%d reduced by %d: row %d differs from the whole image\n",
                 region.width, region.height, region.x, region.y, width, height, reduction, y);
    std::abort();
  }
}

// ---- Store: the first byte chooses a good file of encoded images; every 4 bytes then change one
// of its bytes ----

inline const std::vector<Bytes>& good_stores() {
  static const std::vector<Bytes> stores = [] {
    std::vector<Bytes> result;
    const TemporaryFolder folder;
    for (const hsize_t chunk : {0, 64, 500}) {
      RandomStore{.shape = {1, 1, 3}, .train = 1, .test = 1, .classes = 4}.write(folder / "store.h5");
      {
        hdf5::Session session;
        const hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_LATEST);
        const hdf5::Handle file(H5Fopen((folder / "store.h5").c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
        const Image picture = smooth_image(5, 7, 3, 1);
        encode_split(file.get(), Split::train,
                     {encode_png(picture), encode_jpeg(picture), encode_png(picture)}, chunk);
        encode_split(file.get(), Split::test, {encode_jpeg(picture)}, chunk);
      }
      result.push_back(read_bytes(folder / "store.h5"));
    }
    return result;
  }();
  return stores;
}

inline std::vector<Bytes> store_seeds() {
  std::vector<Bytes> seeds;
  for (std::uint8_t i = 0; i < 3; ++i)
    for (std::uint8_t k = 0; k < 8; ++k) seeds.push_back({i, k, static_cast<std::uint8_t>(k * 37), 0, k});
  return seeds;
}

inline void run_store(std::span<const std::uint8_t> input) {
  static const int descriptor = ::memfd_create("store", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  if (input.empty()) return;
  Bytes file = good_stores()[input[0] % good_stores().size()];
  for (std::size_t i = 1; i + 4 <= input.size(); i += 4) {
    const std::size_t at = input[i] | input[i + 1] << 8 | input[i + 2] << 16;
    file[at % file.size()] = input[i + 3];
  }
  if (::ftruncate(descriptor, static_cast<off_t>(file.size())) != 0 ||
      ::pwrite(descriptor, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size()))
    std::abort();
  try {
    const Store store(path, input[0] / 3 % 2 == 0 ? 0 : 1 << 20);
    for (const Split split : {Split::train, Split::test}) {
      const auto set = store.split(split);
      if (set->largest_bytes() > 1 << 24) continue;
      Bytes scratch(static_cast<std::size_t>(set->largest_bytes()));
      for (std::int64_t i = 0; i < set->size(); ++i) set->stored(i, scratch);
    }
  } catch (const std::runtime_error&) {
  }
}

inline std::vector<FuzzTarget> fuzz_targets() {
  return {{"image", image_seeds(), run_image}, {"store", store_seeds(), run_store}};
}

}  // namespace convoy::data::testing
