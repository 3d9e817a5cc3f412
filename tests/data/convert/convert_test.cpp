#include "data/convert/convert.h"

#include <algorithm>

#include "data/store/store.h"
#include "tests/data/convert/convert_support.h"

namespace convoy::data {
namespace {

using namespace testing;

class ConvertImages : public ::testing::Test {
 protected:
  // Returns the files of a set with two classes. They are PNG, so that pixels can be compared
  // exactly. Image k of class c has tone 10 c + k.
  static std::vector<NamedBytes> files() {
    std::vector<NamedBytes> result;
    for (const char* split : {"train", "test"}) {
      for (int c = 0; c < 2; ++c) {
        for (int k = 0; k < 3; ++k) {
          result.push_back({std::string(split) + (c == 0 ? "/ant/" : "/bee/") + std::to_string(k) + ".png",
                            encode_png(picture(10 * c + k))});
        }
      }
    }
    return result;
  }
  static Image picture(int tone) { return smooth_image(8, 10, 3, tone); }
  void write_folder(const std::vector<NamedBytes>& content) const {
    for (const auto& [name, bytes] : content) write_bytes(folder_ / ("source/" + name), bytes);
  }
  ConvertReport convert_folder(const ConvertOptions& options = {}) const {
    return convert(folder_ / "source", folder_ / "out.h5", options);
  }
  Store result() const { return Store(folder_ / "out.h5"); }
  bool nothing_left() const { return !std::filesystem::exists(folder_ / "out.h5"); }

  TemporaryFolder folder_;
};

TEST_F(ConvertImages, AFolderBecomesAStore) {
  auto content = files();
  content.push_back({"README", {'x'}});
  content.push_back({"train/ant/.hidden.png", {'x'}});
  content.push_back({"train/ant/notes.txt", {'x'}});
  write_folder(content);
  const ConvertReport report = convert_folder();
  EXPECT_EQ(report.format, SourceFormat::images);
  EXPECT_EQ(report.train, 6);
  EXPECT_EQ(report.test, 6);
  const Store store = result();
  EXPECT_EQ(store.info().classes, (std::vector<std::string>{"ant", "bee"}));
  EXPECT_EQ(store.labels(Split::train), (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(image_of(store, Split::train, i), picture(10 * (i / 3) + i % 3).pixels) << i;
  }
}

// An archive must give the same store as its folder, whatever the order of its files and its
// compression.
TEST_F(ConvertImages, AnArchiveGivesTheSameStoreAsItsFolder) {
  write_folder(files());
  convert_folder();
  const Bytes expected = read_bytes(folder_ / "out.h5");
  for (const char* filter : {"none", "gzip", "xz"}) {
    auto content = files();
    std::swap(content[0], content[11]);
    std::swap(content[2], content[5]);
    for (auto& file : content) file.name = "./some/prefix/" + file.name;
    write_tar(folder_ / "set.tar", content, filter);
    convert(folder_ / "set.tar", folder_ / "tar.h5", {});
    EXPECT_TRUE(read_bytes(folder_ / "tar.h5") == expected) << filter;
  }
}

TEST_F(ConvertImages, TheNumberOfThreadsChangesNothing) {
  write_folder(files());
  Bytes expected;
  for (const int threads : {1, 2, 7}) {
    convert_folder({.threads = threads});
    if (expected.empty()) expected = read_bytes(folder_ / "out.h5");
    EXPECT_TRUE(read_bytes(folder_ / "out.h5") == expected) << threads;
  }
}

TEST_F(ConvertImages, ValStandsForTest) {
  auto content = files();
  for (auto& file : content) {
    if (file.name.starts_with("test/")) file.name = "val/" + file.name.substr(5);
  }
  write_folder(content);
  EXPECT_EQ(convert_folder().test, 6);
  write_bytes(folder_ / "source/test/ant/0.png", content[0].content);
  expect_error([&] { convert_folder(); }, {"both test/ and val/"});
}

TEST_F(ConvertImages, GreyAmongColourAndGreyByWish) {
  auto content = files();
  content[1].content = encode_jpeg(smooth_image(8, 10, 1, 5), JCS_UNKNOWN, 100);
  write_folder(content);
  convert_folder();
  const Bytes image = image_of(result(), Split::train, 1);
  EXPECT_EQ(image[0], image[1]);
  EXPECT_NEAR(image[0], smooth_image(8, 10, 1, 5).pixels[0], 2);
  convert_folder({.channels = 1});
  EXPECT_EQ(result().info().shape, (ImageShape{8, 10, 1}));
}

TEST_F(ConvertImages, AnotherSizeIsNamedOrResized) {
  auto content = files();
  content[4].content = encode_png(smooth_image(20, 14, 3, 1));  // this file is train/bee/1.png
  write_folder(content);
  const ConvertOptions raw{.encoding = {Encoding::Form::raw}};
  expect_error([&] { convert_folder(raw); },
               {"source", "train/bee/1.png", "14x20", "expected 10x8", "--size"});
  EXPECT_TRUE(nothing_left());
  convert_folder({.size = 8});
  EXPECT_EQ(result().info().shape, (ImageShape{8, 8, 3}));
  // A 10x8 image has the right height already, so its middle columns must be copied.
  const Bytes image = image_of(result(), Split::train, 0);
  const Image source = picture(0);
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(image[y * 24 + i], source.pixels[(y * 10 + 1) * 3 + i]);
  }
}

TEST_F(ConvertImages, ACorruptJpegIsNamedOrSkipped) {
  auto content = files();
  Bytes half = encode_jpeg(picture(3));
  half.resize(half.size() - 40);
  content[1] = {"train/ant/1.jpg", half};
  content[9] = {"test/bee/0.png", {}};
  for (const bool archive : {false, true}) {
    std::filesystem::remove_all(folder_ / "source");
    if (archive) {
      write_tar(folder_ / "source", content, "gzip");
    } else {
      write_folder(content);
    }
    expect_error([&] { convert_folder(); }, {"source", "train/ant/1.jpg", "--skip-bad"});
    EXPECT_TRUE(nothing_left());
    std::vector<std::string> warnings;
    ConvertOptions options{.skip_bad = true};
    options.warn = [&](const std::string& line) { warnings.push_back(line); };
    const ConvertReport report = convert_folder(options);
    EXPECT_EQ(report.skipped, 2);
    EXPECT_EQ(report.train, 5);
    EXPECT_EQ(report.test, 5);
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_NE((warnings[0] + warnings[1]).find("train/ant/1.jpg"), std::string::npos);
    EXPECT_NE((warnings[0] + warnings[1]).find("test/bee/0.png"), std::string::npos);
    const Store store = result();
    EXPECT_EQ(store.labels(Split::train), (std::vector<std::int32_t>{0, 0, 1, 1, 1}));
    EXPECT_EQ(image_of(store, Split::train, 1), picture(2).pixels);
    EXPECT_EQ(image_of(store, Split::test, 4), picture(12).pixels);
    std::filesystem::remove(folder_ / "out.h5");
  }
}

TEST_F(ConvertImages, AllCorrupt) {
  auto content = files();
  for (auto& file : content) file.content = {1, 2, 3};
  write_folder(content);
  expect_error([&] { convert_folder({.skip_bad = true}); }, {"source", "no image could be decoded"});
  for (const int i : {0, 3}) content[static_cast<std::size_t>(i)].content = files()[0].content;
  write_folder(content);
  expect_error([&] { convert_folder({.skip_bad = true}); }, {"no test images left"});
  EXPECT_TRUE(nothing_left());
}

TEST_F(ConvertImages, MissingAndExtraClasses) {
  auto content = files();
  content.erase(content.begin() + 6, content.end());
  write_folder(content);
  expect_error([&] { convert_folder(); },
               {"source", "6 images of 2 classes", "without a test split", "--test-share"});
  write_bytes(folder_ / "source/test/cow/0.png", content[0].content);
  expect_error([&] { convert_folder(); }, {"test/cow/0.png", "class cow", "no training images"});
}

TEST_F(ConvertImages, AnEmptyClassAndALinkToNowhereAreNotPassedOver) {
  write_folder(files());
  std::filesystem::create_directories(folder_ / "source/train/aardvark");
  write_bytes(folder_ / "source/train/aardvark/list.txt", {});
  expect_error([&] { convert_folder(); }, {"train/aardvark", "no images"});
  std::filesystem::remove_all(folder_ / "source/train/aardvark");
  std::filesystem::create_symlink("/nowhere/0.png", folder_ / "source/train/bee/link.png");
  expect_error([&] { convert_folder(); }, {"bee/link.png", "No such file"});
}

TEST_F(ConvertImages, SourcesThatAreNone) {
  expect_error([&] { convert_folder(); }, {"source", "No such file"});
  write_bytes(folder_ / "source/file.txt", {'a'});
  expect_error([&] { convert_folder(); }, {"source", "no known data set", "train/CLASS"});
  write_bytes(folder_ / "noise", random_bytes(3000, 1));
  expect_error([&] { convert(folder_ / "noise", folder_ / "out.h5", {}); }, {"noise", "no known data set"});
  EXPECT_TRUE(nothing_left());
}

TEST_F(ConvertImages, ATruncatedArchive) {
  for (const char* filter : {"none", "gzip", "xz"}) {
    write_tar(folder_ / "set.tar", files(), filter);
    Bytes whole = read_bytes(folder_ / "set.tar");
    // The empty blocks at the end of an uncompressed tar are more than a quarter of this file, so
    // cut off half of it.
    whole.resize(whole.size() / 2);
    write_bytes(folder_ / "set.tar", whole);
    expect_error([&] { convert(folder_ / "set.tar", folder_ / "out.h5", {.format = SourceFormat::images}); },
                 {"set.tar"});
    EXPECT_TRUE(nothing_left()) << filter;
  }
}

// A download that is cut short must be reported as such, not as another kind of data set.
TEST_F(ConvertImages, AnArchiveThatIsCutShortIsToldFromOneOfAnotherKind) {
  for (const char* filter : {"none", "gzip", "bzip2", "xz"}) {
    write_tar(folder_ / "set.tar", files(), filter);
    const Bytes whole = read_bytes(folder_ / "set.tar");
    for (const std::size_t kept : {std::size_t{40}, whole.size() / 4, whole.size() / 2}) {
      // So short a file cannot be recognised as a tar.
      if (filter == std::string("none") && kept < 512) continue;
      write_bytes(folder_ / "cut.tar", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept)});
      SCOPED_TRACE(filter);
      expect_error([&] { convert(folder_ / "cut.tar", folder_ / "out.h5", {}); }, {"cut.tar: ", "cut short"});
    }
  }
  // A tar that is cut between two files must be refused, too.
  write_tar(folder_ / "set.tar", files(), "none");
  Bytes whole = read_bytes(folder_ / "set.tar");
  const auto last = std::find_if(whole.rbegin(), whole.rend(), [](std::uint8_t byte) { return byte != 0; });
  const auto records = static_cast<std::size_t>(whole.rend() - last + 511) / 512;
  for (std::size_t kept = 1; kept <= records; ++kept) {
    SCOPED_TRACE(kept);
    write_bytes(folder_ / "cut.tar",
                {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(512 * kept)});
    expect_error([&] { convert(folder_ / "cut.tar", folder_ / "out.h5", {}); }, {"cut.tar: ", "cut short"});
  }
  write_bytes(folder_ / "cut.tar", {});
  expect_error([&] { convert(folder_ / "cut.tar", folder_ / "out.h5", {}); }, {"cut.tar: an empty file"});
  gzip({'a'}, folder_ / "notes.gz");
  expect_error([&] { convert(folder_ / "notes.gz", folder_ / "out.h5", {}); }, {"no known data set"});
}

TEST_F(ConvertImages, AnUnwritableDestination) {
  write_folder(files());
  expect_error([&] { convert(folder_ / "source", "/proc/no/out.h5", {}); },
               {"/proc/no/out.h5", "cannot create"});
}

TEST_F(ConvertImages, TheSourceIsNotOverwritten) {
  write_tar(folder_ / "set.tar", files(), "gzip");
  const Bytes archive = read_bytes(folder_ / "set.tar");
  std::filesystem::create_symlink("set.tar", folder_ / "out.h5");
  for (const char* name : {"set.tar", "./set.tar", "out.h5"})
    expect_error([&] { convert(folder_ / "set.tar", folder_ / name, {}); }, {name, "both the source"});
  EXPECT_TRUE(read_bytes(folder_ / "set.tar") == archive);
}

}  // namespace
}  // namespace convoy::data
