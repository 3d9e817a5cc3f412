// Compares the pixels of every kind of JPEG and PNG file with Pillow's.
#include "data/image/decode.h"
#include "tests/data/image/jpeg_kinds.h"
#include "tests/data/python.h"

namespace convoy::data {
namespace {

using namespace testing;

double mean_difference(const Bytes& a, const Bytes& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

TEST(Pillow, ReadsTheSamePixelsOfEveryKind) {
  if (!python_has("PIL")) GTEST_SKIP() << "Pillow is not installed (apt-get install python3-pil)";
  const TemporaryFolder folder;
  std::uint64_t seed = 0;
  for (const JpegKind& kind : jpeg_kinds())
    write_bytes(folder / (kind.name + ".jpg"), kind.encode(detailed_image(50, 61, kind.components, ++seed)));
  run_python("image/pillow_pixels.py", folder.path());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().string();
    const bool jpeg = name.ends_with(".jpg");
    if (!jpeg && !name.ends_with(".png")) continue;
    ++files;
    for (const auto& [channels, suffix] : {std::pair(3, ".rgb"), std::pair(1, ".l")}) {
      const Bytes expected = read_bytes(name + suffix),
                  found = decode_image(read_bytes(name), channels).pixels;
      ASSERT_EQ(found.size(), expected.size()) << name;
      // The libjpeg-turbo in Pillow may round differently.
      EXPECT_LE(mean_difference(found, expected), jpeg ? 0.1 : 0.0) << name << " " << suffix;
    }
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace convoy::data
