// Tests how images are stored: the flags --encode, --short-side, --size and --channels.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "data/convert/image_header.h"
#include "data/convert/jpeg_encode.h"
#include "data/store/store.h"
#include "tests/data/convert/convert_support.h"
#include "tests/data/image/jpeg_kinds.h"

namespace convoy::data {
namespace {

using namespace testing;
using Form = Encoding::Form;

// Returns a gradient with noise, which makes large JPEG files.
Image noisy_image(std::int64_t height, std::int64_t width, std::uint64_t seed) {
  Image image = smooth_image(height, width, 3, static_cast<int>(seed));
  const Bytes noise = random_bytes(image.pixels.size(), seed);
  for (std::size_t i = 0; i < noise.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(image.pixels[i] + noise[i] % 16);
  return image;
}

// Runs the action in a child process. It must succeed and use less than 512 MiB of memory.
void expect_less_than_512_mebibytes(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      action();
    } catch (...) {
      ::_exit(1);
    }
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    ::_exit(usage.ru_maxrss < 512 * 1024 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
#ifdef __SANITIZE_ADDRESS__
  // The action must succeed, but may use more memory, because AddressSanitizer keeps freed memory.
  EXPECT_NE(WEXITSTATUS(status), 1);
#else
  EXPECT_EQ(WEXITSTATUS(status), 0);
#endif
}

class ConvertEncoding : public ::testing::Test {
 protected:
  std::vector<TarEntry> mixed() const {
    std::vector<TarEntry> entries;
    for (const char* split : {"train", "test"})
      for (int i = 0; i < 6; ++i) {
        const Image image = noisy_image(40 + 7 * i, 90 - 5 * i, static_cast<std::uint64_t>(i));
        entries.push_back(
            {fmt::format("{}/{}/{}.{}", split, i % 2 == 0 ? "ant" : "bee", i, i % 3 == 0 ? "png" : "jpg"),
             i % 3 == 0 ? encode_png(image) : encode_jpeg(image)});
      }
    return entries;
  }
  ConvertReport run(const ConvertOptions& options) {
    return convert(folder_ / "set", folder_ / "out.h5", options);
  }
  EncodedStore result() const { return EncodedStore(folder_ / "out.h5"); }

  TemporaryFolder folder_;
};

TEST_F(ConvertEncoding, KeepCopiesTheFiles) {
  write_tree(folder_ / "set", mixed());
  run({.encoding = {Form::keep}});
  const EncodedStore store = result();
  const auto entries = mixed();
  const std::vector<std::size_t> order{0, 2, 4, 1, 3, 5};
  ASSERT_EQ(store.train.files.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(store.train.files[i] == entries[order[i]].content) << i;
  EXPECT_EQ(store.test.labels, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
}

// The mean and standard deviation must be those of the decoded training images. Every image has the
// same weight, whatever its size.
TEST_F(ConvertEncoding, StatisticsAreExact) {
  const auto entries = mixed();
  write_tree(folder_ / "set", entries);
  run({.encoding = {Form::keep}});
  std::array<double, 3> mean{}, square{};
  for (std::size_t i = 0; i < 6; ++i) {
    const Image image = decode_image(entries[i].content, 3);
    std::array<double, 6> sums{};
    for (std::size_t k = 0; k < image.pixels.size(); ++k) {
      sums[k % 3] += image.pixels[k];
      sums[3 + k % 3] += image.pixels[k] * image.pixels[k];
    }
    const double pixels = static_cast<double>(image.pixels.size() / 3);
    for (std::size_t c = 0; c < 3; ++c) {
      mean[c] += sums[c] / pixels / 6;
      square[c] += sums[3 + c] / pixels / 6;
    }
  }
  const EncodedStore store = result();
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(store.mean[c], mean[c] / 255, 1e-6);
    EXPECT_NEAR(store.std[c], std::sqrt(square[c] - mean[c] * mean[c]) / 255, 1e-6);
  }
}

TEST_F(ConvertEncoding, NeitherThreadsNorAnArchivesOrderChangeTheFile) {
  auto entries = mixed();
  write_tree(folder_ / "set", entries);
  Bytes expected;
  for (const int threads : {1, 2, 7}) {
    run({.encoding = {Form::keep}, .threads = threads});
    if (expected.empty()) expected = read_bytes(folder_ / "out.h5");
    EXPECT_TRUE(read_bytes(folder_ / "out.h5") == expected) << threads;
  }
  // The archive now has the files in the reverse order of the rows.
  std::reverse(entries.begin(), entries.end());
  write_archive(folder_ / "set.tar", entries);
  convert(folder_ / "set.tar", folder_ / "out.h5", {.encoding = {Form::keep}});
  EXPECT_TRUE(read_bytes(folder_ / "out.h5") == expected);
  for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_FALSE(file.path().filename().string().starts_with('.'))
        << "a temporary file is left: " << file.path();
}

TEST_F(ConvertEncoding, BadFilesLeaveNoGap) {
  auto entries = mixed();
  entries[1].content.resize(entries[1].content.size() / 2);
  entries[4].content = {};
  write_tree(folder_ / "set", entries);
  expect_error([&] { run({.encoding = {Form::keep}}); }, {"--skip-bad"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.h5"));
  run({.skip_bad = true, .encoding = {Form::keep}});
  const std::vector<Bytes> expected{entries[0].content, entries[2].content, entries[3].content,
                                    entries[5].content};
  EXPECT_TRUE(result().train.files == expected);
  const Bytes folder = read_bytes(folder_ / "out.h5");
  std::reverse(entries.begin(), entries.end());
  write_archive(folder_ / "set.tar", entries);
  convert(folder_ / "set.tar", folder_ / "out.h5", {.skip_bad = true, .encoding = {Form::keep}});
  EXPECT_TRUE(read_bytes(folder_ / "out.h5") == folder);
}

// The files fill several chunks of the store's dataset, and some files lie in two chunks.
TEST_F(ConvertEncoding, LargeStoresAreChunked) {
  std::vector<TarEntry> entries;
  for (int i = 0; i < 5; ++i) {
    Bytes file = encode_jpeg(noisy_image(1200, 1400, static_cast<std::uint64_t>(i)), JCS_UNKNOWN, 100);
    entries.push_back({fmt::format("train/ant/{}.jpg", i), file});
    if (i == 0) entries.push_back({"test/ant/0.jpg", file});
  }
  write_tree(folder_ / "set", entries);
  run({.encoding = {Form::keep}});
  const EncodedStore store = result();
  ASSERT_EQ(store.train.files.size(), 5u);
  EXPECT_TRUE(store.train.files[4] == entries[5].content);
  EXPECT_TRUE(store.train.files[3] == entries[4].content);
}

TEST_F(ConvertEncoding, JpegShrinksTheShorterSide) {
  write_tree(folder_ / "set", mixed());
  EXPECT_EQ(run({.short_side = 32}).encoding.to_string(), "jpeg:90");
  EncodedStore store = result();
  const Image image = decode_image(store.train.files[0], 3);  // 90x40 pixels before resizing
  EXPECT_EQ(image.shape, (ImageShape{32, 72, 3}));
  for (const Bytes& file : store.train.files) EXPECT_EQ(file[0], 0xFF);
  // With a size, both sides must become 32.
  run({.encoding = {Form::jpeg, 100}, .size = 32});
  EXPECT_EQ(decode_image(result().train.files[0], 3).shape, (ImageShape{32, 32, 3}));
}

TEST_F(ConvertEncoding, JpegDoesNotWriteAgainWhatIsSmallEnough) {
  const Image image = noisy_image(60, 70, 1);
  const Bytes coarse = encode_jpeg(image, JCS_UNKNOWN, 30), fine = encode_jpeg(image, JCS_UNKNOWN, 100);
  write_tree(folder_ / "set",
             {{"train/ant/0.jpg", coarse}, {"train/ant/1.jpg", fine}, {"test/ant/0.jpg", fine}});
  run({.encoding = {Form::jpeg, 90}, .short_side = 64});
  const EncodedStore store = result();
  EXPECT_TRUE(store.train.files[0] == coarse);
  EXPECT_LT(store.train.files[1].size(), fine.size() / 2);
  EXPECT_EQ(decode_image(store.train.files[1], 3).shape, image.shape);
}

TEST_F(ConvertEncoding, TheDefaultSuitsTheImages) {
  std::string note;
  const auto chosen = [&](std::vector<TarEntry> entries, ConvertOptions options = {}) {
    options.note = [&](const std::string& line) { note = line; };
    std::filesystem::remove_all(folder_ / "set");
    for (auto& entry : std::vector(entries))
      entries.push_back({"test" + entry.name.substr(5), entry.content});
    write_tree(folder_ / "set", entries);
    return run(options).encoding.to_string();
  };
  EXPECT_EQ(chosen({{"train/a/0.png", png(1)}, {"train/a/1.png", png(2)}}), "raw");
  EXPECT_EQ(chosen({{"train/a/0.png", png(1)}, {"train/a/1.png", png(2, 9, 10)}}), "seekable");
  EXPECT_TRUE(note.starts_with("--encode seekable, as the images differ in size")) << note;
  EXPECT_EQ(chosen({{"train/a/0.png", png(1, 129, 128)}, {"train/a/1.png", png(2, 129, 128)}}), "seekable");
  EXPECT_EQ(chosen({{"train/a/0.png", png(1, 129, 128)}}, {.size = 64}), "raw");
}

TEST_F(ConvertEncoding, ChannelsSayWhatTheStatisticsAreOf) {
  write_tree(folder_ / "set", mixed());
  run({.encoding = {Form::keep}, .channels = 1});
  EXPECT_EQ(result().mean.size(), 1u);
  run({.encoding = {Form::jpeg, 90}, .channels = 1});
  const Bytes file = result().train.files[1];
  EXPECT_LT(file.size(), encode_jpeg(noisy_image(54, 80, 2)).size());
}

bool has_restart_markers(const Bytes& file) {
  constexpr std::array<std::uint8_t, 6> kInterval{0xFF, 0xDD, 0, 4, 0, kRestartInterval};
  return std::search(file.begin(), file.end(), kInterval.begin(), kInterval.end()) != file.end();
}

TEST_F(ConvertEncoding, SeekableFilesHaveTheSamePixels) {
  std::vector<Bytes> files;
  std::vector<std::string> names;
  std::vector<TarEntry> entries{{"test/ant/0.png", png(1)}};
  for (const JpegKind& kind : jpeg_kinds()) {
    names.push_back(kind.name);
    files.push_back(kind.encode(detailed_image(83, 107, kind.components, files.size())));
    entries.push_back({fmt::format("train/ant/{:02}.jpg", files.size()), files.back()});
  }
  files.push_back(png(2));
  names.push_back("PNG");
  entries.push_back({"train/ant/99.png", files.back()});
  write_tree(folder_ / "set", entries);
  run({.encoding = {Form::seekable}});
  const std::vector<Bytes> stored = result().train.files;
  ASSERT_EQ(stored.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_TRUE(decode_image(stored[i], 3).pixels == decode_image(files[i], 3).pixels) << names[i];
    // Files that cannot be transcoded without loss stay as they are: PNG, a JPEG file without its
    // last scans, and files with more blocks than an MCU (minimum coded unit) may have.
    const bool same = names[i] == "PNG" || names[i] == "incomplete" || names[i].starts_with("mixed");
    EXPECT_TRUE(has_restart_markers(stored[i]) || (same && stored[i] == files[i])) << names[i];
  }
  run({.encoding = {Form::jpeg, 90}});
  EXPECT_TRUE(has_restart_markers(result().train.files[0]) || result().train.files[0] == files[0]);
}

TEST_F(ConvertEncoding, TheTextOfAnEncoding) {
  EXPECT_EQ(Encoding::parse("jpeg:85").quality, 85);
  EXPECT_EQ(Encoding::parse("keep").form, Form::keep);
  EXPECT_EQ(Encoding::parse("seekable").to_string(), "seekable");
  for (const char* text : {"jpeg", "jpeg:", "jpeg:0", "jpeg:101", "jpeg:9x", "png", "", "Keep"})
    EXPECT_THROW(Encoding::parse(text), std::invalid_argument) << text;
}

// Decoding one of the six large images takes 115 MiB, so that all six at once would need 690 MiB. A
// noisy file has 14 MiB.
TEST_F(ConvertEncoding, MemoryIsBoundedWhateverTheImages) {
  const Bytes large = encode_jpeg(smooth_image(5000, 8000, 3, 1), JCS_UNKNOWN, 20);
  std::vector<TarEntry> entries;
  const Bytes noisy = encode_jpeg(noisy_image(5000, 6000, 1), JCS_UNKNOWN, 90);
  for (int i = 0; i < 3; ++i) entries.push_back({fmt::format("train/bee/{}.jpg", i), noisy});
  for (int i = 0; i < 6; ++i)
    entries.push_back({fmt::format("{}/ant/{}.jpg", i == 0 ? "test" : "train", i), large});
  write_tree(folder_ / "set", entries);
  expect_less_than_512_mebibytes([&] {
    run({.encoding = {Form::seekable}, .threads = 6});
    run({.short_side = 256, .threads = 6});
  });
}

// If each component of a JPEG file has a scan of its own, libjpeg keeps all coefficients in memory.
// ImageHeader must count them: 2 bytes for each of the three components of a pixel.
TEST_F(ConvertEncoding, ScansOfOneComponentCountInFull) {
  const Bytes scans = encode_jpeg(smooth_image(4000, 4000, 3, 1), [](jpeg_compress_struct& jpeg) {
    static const jpeg_scan_info kScans[] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    for (int i = 0; i < 3; ++i) jpeg.comp_info[i].h_samp_factor = jpeg.comp_info[i].v_samp_factor = 1;
    jpeg.scan_info = kScans;
    jpeg.num_scans = 3;
  });
  const ImageHeader header = read_image_header(scans);
  EXPECT_EQ(header.decoder_bytes, 6 * 4000 * 4000);
  EXPECT_EQ(header.coefficient_bytes, header.decoder_bytes);
  EXPECT_EQ(read_image_header(encode_jpeg(smooth_image(64, 64, 3, 1))).decoder_bytes, 0);
}

// Large files of an archive must not be in memory together: the next file may be read only when the
// last one has been freed. The images have 99 million pixels, and comments add 110 MiB to each JPEG
// file.
TEST_F(ConvertEncoding, LargeFilesOfAnArchiveAreNotHeldTogether) {
  {
    Bytes file = encode_jpeg(smooth_image(9000, 11000, 3, 1), JCS_UNKNOWN, 20);
    Bytes comments;
    for (int i = 0; i < 1750; ++i) {
      comments.insert(comments.end(), {0xFF, 0xFE, 0xFF, 0xFF});
      comments.resize(comments.size() + 65533);
    }
    file.insert(file.begin() + 2, comments.begin(), comments.end());
    write_archive(folder_ / "set",
                  {{"train/a/0.jpg", file}, {"train/a/1.jpg", file}, {"test/a/0.png", png(1)}});
  }
  expect_less_than_512_mebibytes([&] { run({.encoding = {Form::keep}, .threads = 2}); });
}

TEST_F(ConvertEncoding, ImagesTooLargeToDecodeAreNamed) {
  Bytes huge = png(1);
  // Change the width and height in the PNG header to about 65,536.
  for (const std::size_t at : {16u, 17u, 20u, 21u}) huge[at] = at % 2 == 0 ? 0 : 1;
  write_tree(folder_ / "set", {{"train/a/0.png", png(1)}, {"train/a/1.png", huge}, {"test/a/0.png", png(1)}});
  expect_error([&] { run({}); }, {"train/a/1.png", "65546x65544 pixels", "MiB to decode"});
  EXPECT_EQ(left_out_of(run({.skip_bad = true})), "images too large to decode: 1; ");
}

}  // namespace
}  // namespace convoy::data
