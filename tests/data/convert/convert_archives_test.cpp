// Tests archives of class folders: names that occur twice, links, damage, and folders of archives.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "data/convert/archive_reader.h"
#include "tests/data/convert/convert_folders.h"

namespace convoy::data {
namespace {

using namespace testing;
using Kind = TarEntry::Kind;
using ConvertArchives = ConvertFolders;

TEST_F(ConvertArchives, NamesThatLeadOutOfAnArchiveAreLeftOut) {
  write_archive(folder_ / "set.tar", with({{"../train/ant/1.png", png(5)}, {"train/../../1.png", png(6)}}));
  EXPECT_EQ(left_out_of(run("set.tar")), "names that lead out of the archive: 2; ");
  write_archive(folder_ / "set.tar", with({{"train/x/../ant/5.png", png(5)}, {"/train/ant/6.png", png(6)}}));
  EXPECT_EQ(run("set.tar").train, 4);
}

// `tar -r` and `tar -u` add the new version of a file at the end. Unpacking gives the last version.
TEST_F(ConvertArchives, TheLastFileOfANameCounts) {
  const auto expect_as_folder = [&](const std::vector<TarEntry>& entries,
                                    const std::vector<TarEntry>& unpacked, int replaced) {
    std::filesystem::remove_all(folder_ / "set");
    write_tree(folder_ / "set", unpacked);
    const ConvertReport report = run("set");
    EXPECT_EQ(left_out_of(report), "");
    for (const bool zip : {false, true}) {
      write_archive(folder_ / "set.tar", entries, zip);
      EXPECT_EQ(left_out_of(run("set.tar")),
                fmt::format("files that a later one of the same name replaces: {}; ", replaced));
      EXPECT_TRUE(read_bytes(folder_ / "set.tar.h5") == read_bytes(folder_ / "set.h5"));
    }
  };
  std::vector<TarEntry> changed = small_set();
  changed[0].content = png(6);
  expect_as_folder(with({{"./train/ant/0.png", png(5)}, {"train/ant/0.png", png(6)}}), changed, 2);
  // A damaged first version does not matter.
  std::vector<TarEntry> repaired = small_set();
  repaired[1].content = {1, 2};
  repaired.push_back(small_set()[1]);
  expect_as_folder(repaired, small_set(), 1);
  // A link replaces a file, and a file a link.
  const TarEntry link{"train/bee/0.png", {}, Kind::symbolic, "../ant/0.png"};
  changed = small_set();
  changed[1].content = png(1);
  expect_as_folder(with({link}), changed, 1);
  auto entries = small_set();
  entries.insert(entries.begin(), link);
  expect_as_folder(entries, small_set(), 1);
  // A hard link shows the version that stands before it, unless a later entry replaces the link.
  changed = with({{"train/bee/1.png", png(5)}});
  changed[0].content = png(5);
  const TarEntry hard{"train/bee/1.png", {}, Kind::hard, "train/ant/0.png"};
  write_archive(folder_ / "set.tar", with({{"train/ant/0.png", png(5)}, hard}));
  std::filesystem::remove_all(folder_ / "set");
  write_tree(folder_ / "set", changed);
  EXPECT_EQ(run("set.tar").train, run("set").train);
  EXPECT_TRUE(read_bytes(folder_ / "set.tar.h5") == read_bytes(folder_ / "set.h5"));
  write_archive(folder_ / "set.tar", with({hard, {"train/ant/0.png", png(5)}}));
  expect_error([&] { run("set.tar"); }, {"train/bee/1.png: a hard link to train/ant/0.png", "--skip-bad"});
  EXPECT_EQ(run("set.tar", {.skip_bad = true}).train, 2);
  write_archive(folder_ / "set.tar", with({hard, {"train/ant/0.png", png(5)}, hard}));
  EXPECT_EQ(run("set.tar").train, 3);
}

TEST_F(ConvertArchives, DeclaredSizesAreNotBelieved) {
  write_archive(folder_ / "set.tar", small_set());
  Bytes tar = read_bytes(folder_ / "set.tar");
  const std::string huge = "77777777777";  // a size of 8 GiB in octal, for a tar header
  std::copy(huge.begin(), huge.end(), tar.begin() + 124);
  tar[148] = 0;  // clears the header's checksum
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0 : tar[i];
  const std::string checksum = fmt::format("{:06o}", sum);
  std::copy(checksum.begin(), checksum.end(), tar.begin() + 148);
  tar[154] = 0, tar[155] = ' ';
  write_bytes(folder_ / "set.tar", tar);
  expect_error([&] { run("set.tar"); }, {"set.tar"});
}

// libarchive skips a damaged header with its file. The class might be missing without a word.
TEST_F(ConvertArchives, ADamagedHeaderIsAnError) {
  write_archive(folder_ / "set.tar", small_set());
  const Bytes good = read_bytes(folder_ / "set.tar");
  for (const std::string name : {"train/ant/0.png", "train/bee/0.png", "test/bee/0.png"}) {
    Bytes bad = good;
    const auto at = std::search(bad.begin(), bad.end(), name.begin(), name.end());
    at[150] ^= 1;  // a digit of the header's checksum
    write_bytes(folder_ / "bad.tar", bad);
    expect_error([&] { run("bad.tar", {.skip_bad = true}); }, {"bad.tar: damaged or cut short"});
    write_archive(folder_ / "outer.tar", {{"set/ant.tar", good}, {"set/bee.tar", bad}});
    expect_error([&] { run("outer.tar"); }, {"outer.tar: set/bee.tar: damaged or cut short"});
  }
}

// Without the table at its end, libarchive reads the files of a zip archive, but no symbolic links.
TEST_F(ConvertArchives, AZipWithoutItsTableIsAnError) {
  write_archive(folder_ / "set.zip", with({{"train/cow", {}, Kind::symbolic, "ant"}}), true);
  EXPECT_EQ(run("set.zip").classes, 3);
  Bytes zip = read_bytes(folder_ / "set.zip");
  for (const std::size_t cut : {1, 22, 60}) {
    zip.resize(zip.size() - cut);
    write_bytes(folder_ / "cut.zip", zip);
    expect_error([&] { run("cut.zip"); }, {"cut.zip: damaged or cut short"});
  }
}

// libarchive does not look at the checksum at the end of gzip data.
TEST_F(ConvertArchives, TheChecksumOfGzipIsChecked) {
  write_archive(folder_ / "set.tar", small_set());
  const Bytes good = gzip(read_bytes(folder_ / "set.tar"), folder_ / "scratch");
  write_bytes(folder_ / "set.tar.gz", good);
  const auto expect_damage = [&](const Bytes& bytes) {
    write_bytes(folder_ / "bad.tar.gz", bytes);
    expect_error([&] { run("bad.tar.gz"); }, {"bad.tar.gz: damaged or cut short: gzip data"});
    EXPECT_THROW(unpack(bytes, "bad.gz", 1 << 20), std::runtime_error);
    write_archive(folder_ / "outer.tar", {{"set/ant.tar.gz", good}, {"set/bee.tar.gz", bytes}});
    expect_error([&] { run("outer.tar"); }, {"outer.tar: set/bee.tar.gz: damaged or cut short"});
  };
  for (const std::size_t from_end : {1, 5, 8}) {
    Bytes bad = good;
    bad[bad.size() - from_end] ^= 1;
    expect_damage(bad);
    bad.resize(bad.size() - from_end);
    expect_damage(bad);
  }
  // gzip data may consist of several members, and zeros may follow them.
  Bytes members = gzip({'a', 'b'}, folder_ / "scratch");
  const Bytes second = gzip({'c'}, folder_ / "scratch");
  members.insert(members.end(), second.begin(), second.end());
  members.resize(members.size() + 100);
  EXPECT_EQ(unpack(members, "members.gz", 100), (Bytes{'a', 'b', 'c'}));
  EXPECT_THROW(unpack(members, "members.gz", 2), std::runtime_error);
}

// `cat a.tar b.tar` and `cat a.tar.gz b.tar.gz` give one archive, as they do for `tar -i`.
TEST_F(ConvertArchives, TarFilesOneAfterTheOtherAreOne) {
  run_all(with({{"train/cow/0.png", png(5)}}), {}, false);
  write_archive(folder_ / "a.tar", small_set());
  write_archive(folder_ / "b.tar", {{"train/cow/0.png", png(5)}});
  const auto joined = [](Bytes first, const Bytes& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  const Bytes a = read_bytes(folder_ / "a.tar"), b = read_bytes(folder_ / "b.tar");
  write_bytes(folder_ / "both.tar", joined(a, b));
  write_bytes(folder_ / "both.tar.gz", joined(gzip(a, folder_ / "scratch"), gzip(b, folder_ / "scratch")));
  for (const char* both : {"both.tar", "both.tar.gz"}) {
    run(both);
    EXPECT_TRUE(read_bytes(folder_ / (std::string(both) + ".h5")) == read_bytes(folder_ / "set.h5")) << both;
  }
}

// `tar c … | gzip` ends gzip's data well if tar is killed.
TEST_F(ConvertArchives, ATarCutBetweenTwoFilesIsAnErrorInOtherData) {
  write_archive(folder_ / "set.tar", small_set());
  Bytes cut = read_bytes(folder_ / "set.tar");
  const std::string last = "test/bee/0.png";
  cut.resize(
      static_cast<std::size_t>(std::search(cut.begin(), cut.end(), last.begin(), last.end()) - cut.begin()));
  write_bytes(folder_ / "cut.tar.gz", gzip(cut, folder_ / "scratch"));
  write_tar(folder_ / "cut.xz", {{"cut.tar", cut}}, "xz");
  write_archive(folder_ / "outer.tar", {{"set/ant.tar", cut}});
  for (const char* name : {"cut.tar.gz", "cut.xz", "outer.tar"})
    expect_error([&] { run(name); }, {name, "damaged or cut short: a tar file ends with records of zeros"});
}

TEST_F(ConvertArchives, CompressionsMayBeNestedAndAreChecked) {
  write_archive(folder_ / "set.tar", small_set());
  run("set.tar");
  const Bytes once = gzip(read_bytes(folder_ / "set.tar"), folder_ / "scratch");
  write_bytes(folder_ / "twice.tar.gz", gzip(once, folder_ / "scratch"));
  run("twice.tar.gz");
  EXPECT_TRUE(read_bytes(folder_ / "twice.tar.gz.h5") == read_bytes(folder_ / "set.tar.h5"));
  // Two tar files, so that the end of the second one is far from the end of the first.
  write_tar(folder_ / "set.tar.xz", {{"train/ant/0.png", png(1)}, {"test/ant/0.png", Bytes(1 << 20)}}, "xz");
  Bytes xz = read_bytes(folder_ / "set.tar.xz");
  xz.resize(xz.size() - 30);
  write_bytes(folder_ / "set.tar.xz", xz);
  expect_error([&] { run("set.tar.xz"); }, {"set.tar.xz: damaged or cut short"});
  write_bytes(folder_ / "none.gz", gzip({}, folder_ / "scratch"));
  expect_error([&] { run("none.gz"); }, {"none.gz"});
}

// Only the table at the end of a zip file says which files are links. In other data it is too late
// to know.
TEST_F(ConvertArchives, AZipInOtherDataMayHoldNoLinks) {
  write_archive(folder_ / "set.zip", small_set(), true);
  run("set.zip");
  write_bytes(folder_ / "set.zip.gz", gzip(read_bytes(folder_ / "set.zip"), folder_ / "scratch"));
  run("set.zip.gz");
  EXPECT_TRUE(read_bytes(folder_ / "set.zip.gz.h5") == read_bytes(folder_ / "set.zip.h5"));
  write_archive(folder_ / "link.zip", with({{"train/cow", {}, Kind::symbolic, "ant"}}), true);
  const Bytes link = read_bytes(folder_ / "link.zip");
  write_bytes(folder_ / "link.zip.gz", gzip(link, folder_ / "scratch"));
  write_archive(folder_ / "outer.tar", {{"set/ant.zip", link}});
  for (const char* name : {"link.zip.gz", "outer.tar"})
    expect_error([&] { run(name); }, {name, "symbolic links inside other data, expected it unpacked"});
  const Bytes cut(link.begin(), link.end() - 40);
  write_bytes(folder_ / "cut.zip.gz", gzip(cut, folder_ / "scratch"));
  expect_error([&] { run("cut.zip.gz"); }, {"cut.zip.gz: damaged or cut short"});
}

TEST_F(ConvertArchives, AZipMayHaveAComment) {
  write_archive(folder_ / "set.zip", small_set(), true);
  run("set.zip");
  const Bytes zip = read_bytes(folder_ / "set.zip");
  const auto with_comment = [&](const std::string& comment) {
    Bytes longer = zip;
    longer[zip.size() - 2] = static_cast<std::uint8_t>(comment.size() & 255);
    longer[zip.size() - 1] = static_cast<std::uint8_t>(comment.size() >> 8);
    longer.insert(longer.end(), comment.begin(), comment.end());
    write_bytes(folder_ / "comment.zip", longer);
  };
  for (const std::string& comment : {std::string("made by PK\5\6"), std::string(10'000, 'a')}) {
    with_comment(comment);
    run("comment.zip");
    EXPECT_TRUE(read_bytes(folder_ / "comment.zip.h5") == read_bytes(folder_ / "set.zip.h5"));
  }
  with_comment(std::string(20'000, 'a'));
  expect_error([&] { run("comment.zip"); }, {"a comment of more than 16 KiB after the table"});
}

// macOS writes "._ant.tar" next to "ant.tar" on disks of other systems.
TEST_F(ConvertArchives, HiddenFilesNextToArchivesAreLeftOut) {
  write_archive(folder_ / "ant.tar", {{"0.png", png(1)}, {"1.png", png(2)}});
  const std::vector<TarEntry> entries{
      {"ant.tar", read_bytes(folder_ / "ant.tar")}, {"._ant.tar", {1, 2}}, {"__MACOSX/._bee.tar", {3}}};
  write_tree(folder_ / "set", entries);
  write_archive(folder_ / "set.tar", entries);
  for (const char* source : {"set", "set.tar"})
    EXPECT_EQ(left_out_of(run(source, {.test_share = 0.5})), "hidden files: 2; ") << source;
  std::filesystem::create_symlink(".", folder_ / "set/latest");
  EXPECT_EQ(left_out_of(run("set", {.test_share = 0.5})),
            "hidden files: 2; links and folders that cannot be read: 1; ");
}

// `tar -cf a.tar train train/cat` writes a file that it visits twice as a hard link to itself.
TEST_F(ConvertArchives, AHardLinkToItselfChangesNothing) {
  const TarEntry link{"train/ant/link.png", {}, Kind::symbolic, "0.png"};
  run_all(with({link}), {}, false);
  write_archive(folder_ / "twice.tar", with({link,
                                             {"train/ant/link.png", {}, Kind::hard, "train/ant/link.png"},
                                             {"train/ant/0.png", {}, Kind::hard, "train/ant/0.png"}}));
  EXPECT_EQ(left_out_of(run("twice.tar")), "");
  EXPECT_TRUE(read_bytes(folder_ / "twice.tar.h5") == read_bytes(folder_ / "set.h5"));
  // Without the file itself, such a link leads nowhere.
  write_archive(folder_ / "none.tar", with({{"train/ant/1.png", {}, Kind::hard, "train/ant/1.png"}}));
  expect_error([&] { run("none.tar"); }, {"train/ant/1.png"});
}

// Each archive of the folder is a class, so that an archive that cannot be read is never left out.
TEST_F(ConvertArchives, NoArchiveOfAFolderIsLeftOut) {
  std::filesystem::create_directories(folder_ / "set");
  for (const char* name : {"ant", "cow"})
    write_archive(folder_ / fmt::format("set/{}.tar", name), {{"0.png", png(1)}, {"1.png", png(2)}});
  write_bytes(folder_ / "set/docs/figure.svg", {1});
  EXPECT_EQ(left_out_of(run("set", {.test_share = 0.5})), "images outside class folders: 1; ");
  EXPECT_EQ(result().info().classes, (std::vector<std::string>{"ant", "cow"}));
  std::filesystem::create_symlink("nowhere/bee.tar", folder_ / "set/bee.tar");
  for (const bool skip : {false, true})
    expect_error([&] { run("set", {.skip_bad = skip, .test_share = 0.5}); },
                 {"set: bee.tar: a link to nowhere/bee.tar", "expected archives that can be read"});
  std::filesystem::remove(folder_ / "set/bee.tar");
  std::filesystem::create_symlink("nowhere.txt", folder_ / "set/read.txt");
  EXPECT_EQ(left_out_of(run("set", {.test_share = 0.5})),
            "images outside class folders: 1; links and folders that cannot be read: 1; ");
}

TEST_F(ConvertArchives, AnArchiveIsListedOnce) {
  write_archive(folder_ / "ant.tar", {{"0.png", png(1)}, {"1.png", png(2)}});
  write_archive(folder_ / "bee.tar", {{"0.png", png(3)}, {"1.png", png(4)}});
  const std::string list = (folder_ / "{ant,bee,ant}.tar").string();
  expect_error([&] { convert(list, folder_ / "out.h5", {.test_share = 0.5}); },
               {"ant.tar occurs twice, expected once"});
}

TEST_F(ConvertArchives, ALinkThatIsNoImageDoesNotHideThatNothingIsKnown) {
  write_bytes(folder_ / "set/readme.txt", {1});
  std::filesystem::create_symlink("nowhere", folder_ / "set/link.txt");
  expect_error([&] { run("set"); }, {"set: no known data set"});
  std::filesystem::create_symlink("nowhere", folder_ / "set/link.tar");
  expect_error([&] { run("set"); }, {"set: link.tar: a link to nowhere"});
}

}  // namespace
}  // namespace convoy::data
