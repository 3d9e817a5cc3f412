// Tests image files and folders that are used as a data set without a store.
#include "data/image_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "data/loader/loader.h"
#include "tests/data/convert/convert_support.h"

namespace convoy::data {
namespace {

using namespace testing;
using Kind = TarEntry::Kind;

class ImageFilesOf : public ::testing::Test {
 protected:
  ImageFilesOf() { std::filesystem::create_directories(folder_ / "set"); }
  void write(const std::vector<TarEntry>& entries) { write_tree(folder_ / "set", entries); }
  ImageFiles open(const std::vector<std::string>& names = {"set"}, bool skip_bad = false) {
    std::vector<std::string> sources;
    for (const std::string& name : names) sources.push_back(folder_ / name);
    ImageFilesOptions options;
    options.skip_bad = skip_bad;
    options.warn = [this](const std::string& message) { warnings_.push_back(message); };
    return {sources, options};
  }
  std::vector<std::string> names(const ImageFiles& files) const {
    std::vector<std::string> list;
    for (std::int64_t i = 0; i < files.size(); ++i)
      list.push_back(std::filesystem::path(files.name(i)).lexically_relative(folder_.path()));
    return list;
  }
  static std::string left_out(const ImageFiles& files) {
    std::string text;
    for (const auto& [kind, count] : files.left_out()) text += fmt::format("{} {}, ", count, kind);
    return text;
  }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(ImageFilesOf, AFolderAreItsImagesSortedByPath) {
  write({{"b/2.png", png(1)},
         {"b/1, \"x\".jpeg", png(2)},
         {"a.png", png(3)},
         {"a/deep/er/1.JPG", png(4)},
         {"a/.hidden.png", png(5)},
         {"notes.txt", bytes_of("text")},
         {"link.png", {}, Kind::symbolic, "b/2.png"},
         {"linked", {}, Kind::symbolic, "a"}});
  const ImageFiles files = open();
  EXPECT_EQ(names(files),
            (std::vector<std::string>{"set/a.png", "set/a/deep/er/1.JPG", "set/b/1, \"x\".jpeg",
                                      "set/b/2.png", "set/link.png", "set/linked/deep/er/1.JPG"}));
  EXPECT_EQ(left_out(files), "1 .txt files, 2 hidden files, ");
  EXPECT_EQ(files.label(0), -1);
  std::vector<std::uint8_t> scratch(files.largest_bytes());
  for (std::int64_t i = 0; i < files.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(files.stored(i, scratch), read_bytes(files.name(i)))) << files.name(i);
}

TEST_F(ImageFilesOf, NamedFilesKeepTheirOrder) {
  write({{"2.png", png(1)}, {"1.png", png(2)}, {"more/0.png", png(3)}, {"odd", png(4)}});
  EXPECT_EQ(names(open({"set/2.png", "set/1.png", "set/more", "set/odd"})),
            (std::vector<std::string>{"set/2.png", "set/1.png", "set/more/0.png", "set/odd"}));
}

TEST_F(ImageFilesOf, WhatIsNoImageIsNamed) {
  expect_error([&] { open(); }, {"set", "holds no images"});
  expect_error([&] { open({"set/nowhere.png"}); }, {"nowhere.png", "no such file or folder"});
  write({{"1.png", png(1)}, {"2.webp", bytes_of("RIFF")}, {"gone.png", {}, Kind::symbolic, "nowhere.png"}});
  expect_error([&] { open(); }, {"gone.png", "a link to nowhere.png", "--skip-bad"});
  const ImageFiles files = open({"set", "set/nowhere.png"}, true);
  EXPECT_EQ(names(files), std::vector<std::string>{"set/1.png"});
  EXPECT_EQ(files.skipped(), 3);
  EXPECT_EQ(warnings_.size(), 3u);
  std::filesystem::remove(folder_ / "set/gone.png");
  expect_error([&] { open(); }, {"2.webp", "expected JPEG or PNG, found WebP images"});
}

TEST_F(ImageFilesOf, LabelsAreFoldersThatAllNameAClass) {
  write({{"ant/deep/1.png", png(1)}, {"bee/1.png", png(2)}});
  ImageFiles files = open();
  EXPECT_FALSE(files.label_by_folder({"bee", "cow"}));
  EXPECT_EQ(files.label(1), -1);
  EXPECT_TRUE(files.label_by_folder({"bee", "cow", "ant"}));
  EXPECT_EQ(files.label(0), 2);
  EXPECT_EQ(files.label(1), 0);
  write({{"stray.png", png(3)}});
  ImageFiles with_stray = open();
  EXPECT_FALSE(with_stray.label_by_folder({"bee", "cow", "ant"}));
}

TEST_F(ImageFilesOf, TheLoaderSkipsDamagedFilesIfItIsTold) {
  Bytes cut = png(2);
  cut.resize(cut.size() / 2);
  write({{"0.png", png(1)}, {"1.png", cut}, {"2.png", png(3)}, {"3.png", bytes_of("text")}});
  const auto files = std::make_shared<ImageFiles>(open());
  for (const BatchOutput output : {BatchOutput::images, BatchOutput::cuts}) {
    LoaderOptions options;
    options.global_batch = 4;
    options.order = Order::sequential;
    options.augmentation.height = options.augmentation.width = 8;
    options.mean = options.std = {0.5f, 0.5f, 0.5f};
    options.output = output;
    expect_error([&] { Loader(files, options).next(); }, {"1.png"});
    std::mutex mutex;
    std::vector<std::string> skipped;
    options.skip = [&](const std::string& message) {
      const std::lock_guard lock(mutex);
      skipped.push_back(message);
    };
    Loader loader(files, options);
    const BatchLease batch = loader.next();
    EXPECT_EQ(std::vector(batch->samples, batch->samples + 4), (std::vector<std::int64_t>{0, -1, 2, -1}));
    if (output == BatchOutput::images) {
      EXPECT_TRUE(std::all_of(batch->images + 192, batch->images + 384, [](float x) { return x == 0; }));
    }
    const std::lock_guard lock(mutex);
    ASSERT_GE(skipped.size(), 2u);  // more if the loader reads ahead
    EXPECT_NE(skipped[0].find("set/1.png: "), std::string::npos);
    EXPECT_NE(skipped[1].find("set/3.png: neither a JPEG nor a PNG image"), std::string::npos);
  }
}

}  // namespace
}  // namespace convoy::data
