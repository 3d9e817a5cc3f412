// Tests which files of a folder or an archive become images, and which split and class they get.
#include "tests/data/convert/convert_folders.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "data/convert/catalogue.h"
#include "data/store/store.h"

namespace convoy::data {
namespace {

using namespace testing;
using Kind = TarEntry::Kind;

TEST_F(ConvertFolders, NestedFoldersBelongToTheirClassAndExtensionsMayBeInCapitals) {
  const Bytes jpeg = encode_jpeg(smooth_image(8, 10, 3, 9));
  run_all(
      with({{"train/ant/z/young/1.PNG", png(5)}, {"train/ant/a/2.JFIF", jpeg}, {"train/bee/3.JPEG", jpeg}}));
  EXPECT_EQ(result().info().classes, (std::vector<std::string>{"ant", "bee"}));
  EXPECT_EQ(result().labels(Split::train), (std::vector<std::int32_t>{0, 0, 0, 1, 1}));
}

// Files are read if Pillow knows their extension as one of JPEG or PNG. Files with the extension of
// another image format are an error, because leaving them out in silence would lose images. The
// extensions tested are those of torchvision's ImageFolder, of Pillow and of cameras.
TEST_F(ConvertFolders, EveryExtensionOfAnImageIsReadOrAnError) {
  const Bytes jpeg = encode_jpeg(smooth_image(8, 10, 3, 9));
  for (const std::string extension : {"jpg", "jpeg", "jpe", "jfif", "jif", "pjpeg", "pjp", "JPE"}) {
    const ConvertReport report = run_all(with({{"train/ant/1." + extension, jpeg}}));
    EXPECT_EQ(report.train, 3) << extension;
    EXPECT_EQ(left_out_of(report), "") << extension;
  }
  EXPECT_EQ(run_all(with({{"train/ant/1.apng", png(5)}, {"train/ant/2.png", png(6)}})).train, 4);
  for (const auto& [extension, kind] : {std::pair("ppm", "PPM"),
                                        {"bmp", "BMP"},
                                        {"tiff", "TIFF"},
                                        {"webp", "WebP"},
                                        {"tga", "TGA"},
                                        {"ICO", "icon"},
                                        {"j2k", "JPEG 2000"}}) {
    const auto entries = with({{std::string("train/ant/1.") + extension, {1}}});
    const std::string found = std::string("1 ") + kind + " images";
    expect_all_fail(entries,
                    {std::string("train/ant/1.") + extension, "expected JPEG or PNG, found " + found});
    EXPECT_EQ(left_out_of(run_all(entries, {.skip_bad = true})), std::string(kind) + " images: 1; ");
  }
}

// The extensions of Pillow 9.4 but for those of JPEG and PNG, of videos, documents and data
// (Image.registered_extensions()), then those of other programs.
TEST(ImageEndings, NoImageIsTakenForAnotherFile) {
  for (const std::string extension :
       {"blp",  "bmp",  "bw",   "cur", "dcx",  "dds",  "dib",  "emf", "eps", "fit",  "fits", "flc",  "fli",
        "ftc",  "ftu",  "gbr",  "gif", "icb",  "icns", "ico",  "iim", "im",  "j2c",  "j2k",  "jp2",  "jpc",
        "jpf",  "jpx",  "mpo",  "msp", "palm", "pbm",  "pcd",  "pcx", "pgm", "pnm",  "ppm",  "psd",  "pxr",
        "ras",  "rgb",  "rgba", "sgi", "tga",  "tif",  "tiff", "vda", "vst", "webp", "wmf",  "xbm",  "xpm",
        "avif", "heic", "heif", "hif", "jxl",  "jxr",  "exr",  "hdr", "pfm", "pam",  "svg",  "svgz", "xcf",
        "dcm",  "nii",  "qoi",  "dng", "cr2",  "cr3",  "nef",  "arw", "orf", "rw2",  "raf",  "pef",  "djvu"})
    EXPECT_TRUE(unread_image_kind("a/b." + extension)) << extension;
  for (const std::string path : {"a.txt", "a.pdf", "a.mp4", "a.json", "tga", ".tga", "a.tga/b"})
    EXPECT_FALSE(unread_image_kind(path)) << path;
}

// Rows must have the order of torchvision.datasets.ImageFolder: by class, then by folder, then by
// file name. "a-b" sorts before "a/b" as a path, but "a" before "a-b" as a folder.
TEST_F(ConvertFolders, RowsAreInTorchvisionsOrder) {
  run_all(
      with(
          {{"train/ant-lion/0.png", png(6)}, {"train/ant/a/1.png", png(7)}, {"train/ant/a-b/1.png", png(8)}}),
      {.encoding = {Encoding::Form::keep}});
  const EncodedStore store(folder_ / "set.h5");
  EXPECT_EQ(store.train.labels, (std::vector<std::int32_t>{0, 0, 0, 1, 2}));
  const std::vector<Bytes> expected{png(1), png(7), png(8), png(6), png(2)};
  EXPECT_TRUE(store.train.files == expected);
}

TEST_F(ConvertFolders, FormatsThatAreNotReadAreAnErrorOrCounted) {
  const auto entries = with({{"train/ant/1.webp", {1}},
                             {"train/bee/1.WEBP", {1}},
                             {"test/bee/1.tif", {1}},
                             {"train/ant/2.gif", {1}},
                             {"train/ant/3.bmp", {1}},
                             {"train/ant/notes.txt", {1}},
                             {"logo.png", {1}},
                             {"train/ant/.4.png", {1}},
                             {"__MACOSX/train/ant/._0.png", {1}}});
  expect_all_fail(
      entries, {"test/bee/1.tif", "1 BMP images, 1 GIF images, 1 TIFF images, 2 WebP images", "--skip-bad"});
  const ConvertReport report = run_all(entries, {.skip_bad = true});
  EXPECT_EQ(report.train, 2);
  EXPECT_EQ(left_out_of(report),
            ".txt files: 1; BMP images: 1; GIF images: 1; TIFF images: 1; WebP images: 2; hidden files: 2; "
            "images outside class folders: 1; ");
  expect_all_fail(with({{"train/cow/0.webp", {1}}}), {"train/cow", "holds no images"}, {.skip_bad = true});
}

TEST_F(ConvertFolders, TheFirstSplitInAPathCounts) {
  auto entries = small_set();
  entries.push_back({"test/train/night/0.png", png(5)});
  expect_all_fail(entries, {"test/train/night/0.png", "class train has no training images"});
  entries.push_back({"train/train/night/0.png", png(6)});
  run_all(entries);
  EXPECT_EQ(result().info().classes, (std::vector<std::string>{"ant", "bee", "train"}));
  EXPECT_EQ(result().labels(Split::test), (std::vector<std::int32_t>{0, 1, 2}));
}

TEST_F(ConvertFolders, TwoRootsAreNamedAndOneMayBeChosen) {
  auto entries = small_set("images/");
  entries.push_back({"masks/train/cat/0.png", png(5)});
  expect_all_fail(entries, {"both images and masks", "--root"});
  const ConvertReport report = run_all(entries, {.root = "images"});
  EXPECT_EQ(report.train, 2);
  EXPECT_EQ(left_out_of(report), "images outside class folders: 1; ");
  for (const char* root : {"images/", "./images", "masks/../images//"})
    EXPECT_EQ(run_all(entries, {.root = root}).train, 2) << root;
  for (const std::string root : {"a/c", "/a/b", "../a/b"})
    expect_all_fail(small_set("a/b/"), {"--root " + root + ": no files in such a folder"}, {.root = root});
}

TEST_F(ConvertFolders, SplitFoldersMayHaveOtherNamesButNotTwo) {
  for (const std::string name : {"val", "valid", "validation", "Test"}) {
    auto entries = small_set();
    for (auto& entry : entries)
      if (entry.name.starts_with("test")) entry.name = name + entry.name.substr(4);
    EXPECT_EQ(run_all(entries).test, 2) << name;
  }
  const auto both = with({{"val/ant/0.png", png(5)}});
  expect_all_fail(both, {"both test/ and val/", "--test-folder"});
  EXPECT_EQ(left_out_of(run_all(both, {.test_folder = "test"})), "images in val/: 1; ");
  EXPECT_EQ(run_all(both, {.test_folder = "val"}).test, 1);
  expect_all_fail(both, {"--test-folder dev"}, {.test_folder = "dev"});
}

TEST_F(ConvertFolders, WithoutSplitsAShareOfEveryClassIsTested) {
  std::vector<TarEntry> entries;
  for (int i = 0; i < 50; ++i) entries.push_back({"set/ant/" + std::to_string(i) + ".png", png(i)});
  for (int i = 0; i < 10; ++i) entries.push_back({"set/bee/" + std::to_string(i) + ".png", png(50 + i)});
  entries.push_back({"set/cow/0.png", png(60)});
  expect_all_fail(entries, {"61 images of 3 classes", "--test-share"});
  const ConvertReport report = run_all(entries, {.test_share = 0.2});
  EXPECT_EQ(report.train, 49);
  EXPECT_EQ(report.test, 12);
  std::vector<int> count(3);
  const Store store = result();
  for (const auto label : store.labels(Split::test)) ++count[static_cast<std::size_t>(label)];
  EXPECT_EQ(count, (std::vector<int>{10, 2, 0}));
  // A second run must choose the same test images.
  const Bytes once = read_bytes(folder_ / "set.h5");
  run("set", {.test_share = 0.2});
  EXPECT_TRUE(read_bytes(folder_ / "set.h5") == once);
  expect_all_fail(small_set(), {"--test-share 0.2", "test images of its own"}, {.test_share = 0.2});
}

TEST_F(ConvertFolders, ASecondSourceMayHoldTheTestImages) {
  write_tree(folder_ / "a", {{"ant/0.png", png(1)}, {"bee/0.png", png(2)}});
  write_archive(folder_ / "b.tar", {{"photos/bee/0.png", png(3)}, {"photos/ant/9.png", png(4)}});
  const ConvertReport report = run("a", {.encoding = {Encoding::Form::keep}, .test = folder_ / "b.tar"});
  EXPECT_EQ(report.train, 2);
  const EncodedStore store(folder_ / "a.h5");
  EXPECT_TRUE(store.test.files == (std::vector<Bytes>{png(4), png(3)}));
  EXPECT_EQ(store.test.labels, (std::vector<std::int32_t>{0, 1}));
  expect_error([&] { run("a", {.test = folder_ / "a/../a"}); }, {"--test", "the source itself"});
  expect_error([&] { convert(folder_ / "a", folder_ / "b.tar", {.test = folder_ / "b.tar"}); },
               {"b.tar: both the source and the file to write"});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "b.tar"));
  write_archive(folder_ / "b.tar", {{"0.png", png(3)}});
  expect_error([&] { run("a", {.test = folder_ / "b.tar"}); }, {"b.tar", "--test-labels"});
  write_tree(folder_ / "c", small_set());
  expect_error([&] { run("c", {.test = folder_ / "a"}); }, {"test images of its own"});
}

TEST_F(ConvertFolders, LinksGiveWhatTheyLeadTo) {
  const auto entries = with({{"store/1.png", png(5)},
                             {"store/2.png", png(6)},
                             {"train/ant/soft.png", {}, Kind::symbolic, "../../store/1.png"},
                             {"train/bee/hard.png", {}, Kind::hard, "store/2.png"},
                             {"train/bee/chain.png", {}, Kind::symbolic, "../ant/soft.png"},
                             {"train/cow", {}, Kind::symbolic, "../store"},
                             {"test/cow", {}, Kind::symbolic, "../train/cow"}});
  const ConvertReport report = run_all(entries, {}, false);
  EXPECT_EQ(report.train, 7);
  EXPECT_EQ(result().labels(Split::train), (std::vector<std::int32_t>{0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(result().labels(Split::test), (std::vector<std::int32_t>{0, 1, 2, 2}));
}

TEST_F(ConvertFolders, LinksThatLeadNowhereAreNamedOrCounted) {
  auto entries = with({{"train/bee/1.png", {}, Kind::symbolic, "../../none.png"},
                       {"notes.txt", {}, Kind::symbolic, "none.txt"}});
  expect_all_fail(entries, {"train/bee/1.png", "a link to ../../none.png"});
  std::vector<std::string> warnings;
  ConvertOptions options{.skip_bad = true};
  options.warn = [&](const std::string& line) { warnings.push_back(line); };
  const ConvertReport report = run_all(entries, options, false);
  EXPECT_EQ(left_out_of(report), "links and folders that cannot be read: 2; ");
  EXPECT_EQ(report.skipped, 1);
  ASSERT_EQ(warnings.size(), 4u);  // of the folder and of the archive
  for (const char* line : {"set: notes.txt: a link to none.txt", "set: train/bee/1.png: a link to"})
    EXPECT_EQ(std::ranges::count_if(warnings, [&](const auto& w) { return w.find(line) != w.npos; }), 1)
        << line;
  expect_all_fail(with({{"train/bee/1.webp", {}, Kind::symbolic, "../../none.webp"}}), {"train/bee/1.webp"});
  write_archive(folder_ / "hard.tar", with({{"train/bee/1.png", {}, Kind::hard, "train/none.png"}}));
  expect_error([&] { run("hard.tar"); }, {"train/bee/1.png", "a hard link to train/none.png"});
}

// A broken link in place of a class folder must be an error. If that class were left out, the
// labels of all later classes would change.
TEST_F(ConvertFolders, ALinkInAClasssPlaceIsNeverLeftOut) {
  auto entries = with({{"train/aa", {}, Kind::symbolic, "../none"}});
  for (const bool skip : {false, true}) {
    expect_all_fail(entries, {"train/aa: a link to ../none", "expected the folder of a class"},
                    {.skip_bad = skip});
    expect_all_fail({{"set/bee/x/1.png", png(1)},
                     {"set/bee/y/1.png", png(2)},
                     {"set/ant", {}, Kind::symbolic, "../none"}},
                    {"set/ant: a link to ../none", "expected the folder of a class"},
                    {.skip_bad = skip, .test_share = 0.5});
  }
  entries.back().name = "test/aa";
  EXPECT_EQ(left_out_of(run_all(entries, {.skip_bad = true}, false)),
            "links and folders that cannot be read: 1; ");
}

TEST_F(ConvertFolders, LinksInACircleEnd) {
  const auto entries = with({{"train/ant/up", {}, Kind::symbolic, ".."},
                             {"train/ant/self.png", {}, Kind::symbolic, "self.png"},
                             {"train/bee/a", {}, Kind::symbolic, "../../x"},
                             {"x/b", {}, Kind::symbolic, "../x"},
                             {"x/1.png", png(7)}});
  expect_all_fail(entries, {"train/ant/self.png"});
  const ConvertReport report = run_all(entries, {.skip_bad = true}, false);
  EXPECT_EQ(report.train, 3);
  EXPECT_EQ(report.skipped, 3);
}

TEST_F(ConvertFolders, LinksThatMultiplyAreCutOff) {
  std::vector<TarEntry> entries = small_set();
  for (int level = 0; level < 30; ++level) {
    const std::string name = "train/l" + std::to_string(level), next = "../l" + std::to_string(level + 1);
    entries.push_back({name + "/a", {}, Kind::symbolic, next});
    entries.push_back({name + "/b", {}, Kind::symbolic, next});
  }
  entries.push_back({"train/l30/0.png", png(5)});
  write_archive(folder_ / "set.tar", entries);
  expect_error([&] { run("set.tar"); }, {"folders through links"});
}

// torchvision sorts folders by name even if the names are numbers.
TEST_F(ConvertFolders, FoldersWithNumbersAreSortedByName) {
  std::vector<TarEntry> entries;
  for (const std::string name : {"10", "2", "1"})
    for (const std::string split : {"Training", "testing"})
      entries.push_back({split + "/" + name + "/0.png", png(1)});
  run_all(entries);
  EXPECT_EQ(result().info().classes, (std::vector<std::string>{"1", "10", "2"}));
  EXPECT_EQ(result().info().size, (std::array<std::int64_t, 2>{3, 3}));
}

// Stores, tables and JSON hold names of classes as UTF-8.
TEST_F(ConvertFolders, NamesOfClassesAreUtf8) {
  run_all(with({{"train/caf\xC3\xA9/0.png", png(5)}}));
  EXPECT_EQ(result().info().classes, (std::vector<std::string>{"ant", "bee", "caf\xC3\xA9"}));
  // Python and Windows mark names in a zip archive as UTF-8: bit 11 of the flags of an entry.
  Bytes zip = read_bytes(folder_ / "set.zip");
  for (std::size_t i = 0; i + 10 < zip.size(); ++i) {
    const std::string start(zip.begin() + static_cast<std::ptrdiff_t>(i),
                            zip.begin() + static_cast<std::ptrdiff_t>(i + 4));
    if (start == "PK\3\4") zip[i + 7] |= 8;
    if (start == "PK\1\2") zip[i + 9] |= 8;
  }
  write_bytes(folder_ / "marked.zip", zip);
  run("marked.zip");
  EXPECT_TRUE(read_bytes(folder_ / "marked.zip.h5") == read_bytes(folder_ / "set.h5"));
  for (const bool skip_bad : {false, true})
    expect_all_fail(with({{"train/caf\xE9/0.png", png(5)}}),
                    {"found class 'caf\\xE9', expected a name in UTF-8"}, {.skip_bad = skip_bad});
  run_all(with({{"train/ant/caf\xE9.png", png(5)}}));  // names of files are not kept
}

TEST_F(ConvertFolders, AnEmptyClassIsRefusedInBothForms) {
  expect_all_fail(with({{"train/aardvark", {}, Kind::folder}}), {"train/aardvark", "holds no images"});
  expect_all_fail(with({{"train/aardvark/list.txt", {1}}}), {"train/aardvark", "holds no images"},
                  {.skip_bad = true});
  run_all(with({{"train/.git", {}, Kind::folder}, {"test/aardvark", {}, Kind::folder}}));
}

TEST_F(ConvertFolders, SkippingNeverLosesAClass) {
  auto entries = with({{"train/bee/1.png", {1, 2}}, {"test/ant/1.png", {}}});
  EXPECT_EQ(left_out_of(run_all(entries, {.skip_bad = true})),
            "empty files: 1; files that are neither JPEG nor PNG: 1; ");
  entries[1].content = bytes_of("\x89PNG");
  expect_all_fail(entries, {"training images of class bee"}, {.skip_bad = true});
}

// Root can read anything, so convert in a child process as another user.
TEST_F(ConvertFolders, WhatCannotBeReadIsNamed) {
  for (const char* set : {"class", "part", "split", "whole", "listed", "outer/set", "file"})
    write_tree(folder_ / set, with({{"train/cow/0.png", png(5)}, {"train/ant/part.1/0.png", png(6)}}));
  write_archive(folder_ / "set.tar", small_set());
  write_archive(folder_ / "outer/set.tar", small_set());
  const std::vector<std::string> closed{"class/train/cow", "part/train/ant/part.1", "split/test", "whole",
                                        "outer",           "file/train/ant/0.png",  "set.tar"};
  namespace fs = std::filesystem;
  for (const std::string& path : closed) fs::permissions(folder_ / path, fs::perms::none);
  // A folder whose names can be listed, but whose files cannot be opened.
  fs::permissions(folder_ / "listed", fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  fs::permissions(folder_.path(), fs::perms::all);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(3);
    bool good = true;
    // `begin` is the path in the test's folder with which the message begins; "": no error.
    const auto expect = [&](const std::string& set, bool skip, const std::string& begin) {
      std::string found;
      try {
        run(set, {.skip_bad = skip});
      } catch (const std::exception& error) {
        found = error.what();
      }
      const std::string wanted = begin.empty() ? "" : (folder_ / begin).string() + ": Permission denied";
      if (begin.empty() ? found.empty() : found.starts_with(wanted)) return;
      std::fprintf(stderr, "%s: found '%s', expected '%s'\n", set.c_str(), found.c_str(), wanted.c_str());
      good = false;
    };
    for (const bool skip : {false, true}) {
      expect("class", skip, "class: train/cow");
      for (const char* set : {"whole", "outer/set", "outer/set.tar", "set.tar"}) expect(set, skip, set);
    }
    expect("part", false, "part: train/ant/part.1");
    expect("part", true, "");
    expect("split", false, "split: test");
    expect("file", false, "file: train/ant/0.png");
    expect("file", true, "");
    expect("listed", false, "listed: test");
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const std::string& path : closed) fs::permissions(folder_ / path, fs::perms::all);
  fs::permissions(folder_ / "listed", fs::perms::all);
}

}  // namespace
}  // namespace convoy::data
