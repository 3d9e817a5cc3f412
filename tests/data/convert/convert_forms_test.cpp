// Tests published forms of data sets that are not plain folders of images.
#include "tests/data/convert/convert_forms.h"

#include <fmt/format.h>

#include "data/convert/catalogue.h"
#include "data/convert/csv.h"
#include "data/store/store.h"

namespace convoy::data {
namespace {

using namespace testing;

class ConvertWebDataset : public ConvertForms {
 protected:
  void shard(const std::string& name, const std::vector<TarEntry>& entries) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_archive(folder_ / name, entries);
  }
  // Writes shards whose keys are not in alphabetical order. The rows must have the order of the
  // shards, not that of the keys.
  void write_shards() {
    shard("wds/set-train-000.tar", {{"b.jpg", png(1)},
                                    {"b.cls", bytes_of("10\n")},
                                    {"b.txt", bytes_of("a caption")},
                                    {"a.cls", bytes_of("2")},
                                    {"a.png", png(2)}});
    shard("wds/set-train-001.tar",
          {{"dir/a.png", png(3)}, {"dir/a.json", bytes_of(R"({"label": 10, "x": [1]})")}});
    shard("wds/set-val-000.tar", {{"a.png", png(4)}, {"a.json", bytes_of(R"({"label": "2"})")}});
  }
};

TEST_F(ConvertWebDataset, ShardsInAFolder) {
  write_shards();
  const ConvertReport report = run_in("wds");
  EXPECT_EQ(report.format, SourceFormat::webdataset);
  EXPECT_EQ(left_out_of(report), ".txt files: 1; ");
  EXPECT_EQ(classes(), (std::vector<std::string>{"2", "10"}));  // not "10", "2": sorted as numbers
  const EncodedStore store = result();
  EXPECT_TRUE(store.train.files == (std::vector<Bytes>{png(1), png(2), png(3)}));
  EXPECT_EQ(store.train.labels, (std::vector<std::int32_t>{1, 0, 1}));
  EXPECT_EQ(store.test.labels, (std::vector<std::int32_t>{0}));
}

TEST_F(ConvertWebDataset, FilesNextToShardsAreCounted) {
  write_shards();
  write_bytes(folder_ / "wds/preview.png", png(1));
  write_bytes(folder_ / "wds/logo.svg", {1});
  write_bytes(folder_ / "wds/README", {1});
  EXPECT_EQ(left_out_of(run_in("wds")),
            ".txt files: 1; files without an extension: 1; images outside class folders: 2; ");
  EXPECT_EQ(result().train.files.size(), 3u);
}

// Images for validation must not be tested together with those for the last test.
TEST_F(ConvertWebDataset, ShardsOfTwoTestSplitsAreRefused) {
  write_shards();
  shard("wds/set-test-000.tar", {{"z.png", png(9)}, {"z.cls", bytes_of("2")}});
  expect_error([&] { run_in("wds"); }, {"wds: found the splits 'test' and 'val'", "expected one"});
  const std::string wds = folder_ / "wds";
  run(wds + "/set-train-*.tar", {.test = wds + "/set-test-*.tar"});
  EXPECT_EQ(result().test.files.size(), 1u);
}

TEST_F(ConvertWebDataset, ListsOfShards) {
  write_shards();
  const std::string wds = folder_ / "wds";
  run(wds + "/set-train-{000..001}.tar", {.test = wds + "/set-val-*.tar"});
  EXPECT_EQ(result().train.files.size(), 3u);
  EXPECT_EQ(result().test.files.size(), 1u);
  run(wds + "/set-*.tar");
  EXPECT_EQ(result().train.files.size(), 3u);
  expect_error([&] { run(wds + "/set-train-{000..002}.tar"); }, {"set-train-002.tar", "no such file"});
  EXPECT_EQ(expand_braces("a{8..10}b{x,y}.tar").size(), 6u);
  EXPECT_EQ(expand_braces("a{08..10}")[2], "a10");
  expect_error([] { expand_braces("{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}"); }, {"stands for more than"});
}

TEST_F(ConvertWebDataset, ShardsOfNoSplit) {
  shard("one.tar", {{"a.png", png(1)},
                    {"a.cls", bytes_of("cat")},
                    {"b.png", png(2)},
                    {"b.cls", bytes_of("cat")},
                    {"c.png", png(3)},
                    {"c.cls", bytes_of("dog")},
                    {"d.png", png(4)},
                    {"d.cls", bytes_of("dog")}});
  expect_error([&] { run_in("one.tar"); }, {"4 images of 2 classes", "--test-share"});
  EXPECT_EQ(run_in("one.tar", {.test_share = 0.5}).test, 2);
  shard("two/train.tar", {{"a.png", png(1)}, {"a.cls", bytes_of("cat")}});
  shard("two/other.tar", {{"a.png", png(1)}, {"a.cls", bytes_of("cat")}});
  expect_error([&] { run_in("two"); }, {"other.tar/a.png", "in no split"});
}

TEST_F(ConvertWebDataset, SamplesWithoutTheirOtherHalf) {
  const std::vector<TarEntry> good{{"a.png", png(1)}, {"a.cls", bytes_of("0")}};
  shard("wds/val.tar", good);
  for (const auto& [bad, words] :
       std::vector<std::pair<TarEntry, std::string>>{{{"b.png", png(2)}, "train.tar/b.png: no label"},
                                                     {{"b.cls", bytes_of("1")}, "train.tar/b: no image"},
                                                     {{"b.json", bytes_of("{\"label\": {}}")}, ""},
                                                     {{"b.json", bytes_of("[[[[")}, ""}}) {
    auto entries = good;
    entries.push_back(bad);
    shard("wds/train.tar", entries);
    if (!words.empty()) expect_error([&] { run_in("wds"); }, {words, "--skip-bad"});
    EXPECT_EQ(run_in("wds", {.skip_bad = true}).train, 1);
  }
  for (const bool image_first : {true, false}) {
    std::vector<TarEntry> two{{"a.cls", bytes_of("0")}, {"a.json", bytes_of(R"({"label": 1})")}};
    two.insert(image_first ? two.begin() : two.end(), {"a.png", png(1)});
    shard("wds/train.tar", two);
    expect_error([&] { run_in("wds"); }, {"train.tar/a.json: the label is 1, but the sample has label 0"});
  }
  shard("wds/train.tar", {{"a.png", png(1)}, {"a.cls", bytes_of("0")}, {"a.png", png(2)}});
  EXPECT_EQ(left_out_of(run_in("wds")), "files that a later one of the same name replaces: 1; ");
  EXPECT_TRUE(result().train.files == std::vector<Bytes>{png(2)});
  shard("wds/train.tar", {{"a.png", png(1)}, {"a.cls", bytes_of("0")}, {"a.jpg", png(2)}});
  EXPECT_EQ(left_out_of(run_in("wds")), ".jpg files: 1; ");
}

TEST_F(ConvertWebDataset, ImagesOfOtherFormatsAreNamed) {
  const std::vector<TarEntry> png_samples{{"a.png", png(1)}, {"a.json", bytes_of("{\"label\": 0}")}};
  auto webp_samples = png_samples;
  for (const auto& [name, content] : {std::pair("b.webp", "x"), {"b.json", "{\"label\": 0}"}})
    webp_samples.push_back({name, bytes_of(content)});
  shard("wds/val.tar", png_samples);
  shard("wds/train.tar", webp_samples);
  expect_error([&] { run_in("wds"); }, {"train.tar/b.webp: expected JPEG or PNG, found WebP images"});
  const ConvertReport report = run_in("wds", {.skip_bad = true});
  EXPECT_EQ(report.train, 1);
  EXPECT_EQ(left_out_of(report), "WebP images: 1; ");
  // A set of nothing but WebP images is a WebDataset, too.
  shard("other/val.tar", {webp_samples[2], webp_samples[3]});
  expect_error([&] { run_in("other"); }, {"val.tar/b.webp: expected JPEG or PNG, found WebP images"});
  // A sample may hold its image in two formats, in any order.
  for (const bool before : {true, false}) {
    const TarEntry webp{"a.webp", {1}};
    auto both = png_samples;
    both.insert(before ? both.begin() : both.end(), webp);
    shard("wds/train.tar", both);
    EXPECT_EQ(left_out_of(run_in("wds")), ".webp files: 1; ");
    EXPECT_TRUE(result().train.files == (std::vector<Bytes>{png(1)}));
  }
}

// Only "a.png" is the image of sample "a", although "a.depth.png" comes before it.
TEST_F(ConvertWebDataset, OnlyThePlainExtensionIsTheImage) {
  const std::vector<TarEntry> entries{
      {"a.cls", bytes_of("0")}, {"a.depth.png", png(1)}, {"a.png", png(2)}, {"a.seg.png", png(3)}};
  shard("wds/train.tar", entries);
  shard("wds/val.tar", entries);
  EXPECT_EQ(left_out_of(run_in("wds")), ".depth.png files: 2; .seg.png files: 2; ");
  EXPECT_TRUE(result().train.files == (std::vector<Bytes>{png(2)}));
}

TEST_F(ConvertForms, FlagsThatAFormatDoesNotTakeAreRefused) {
  write_archive(folder_ / "wds.tar", {{"a.png", png(1)}, {"a.cls", bytes_of("0")}});
  write_bytes(folder_ / "labels.txt", bytes_of("0\n"));
  expect_error([&] { run_in("wds.tar", {.test = folder_ / "other", .test_labels = folder_ / "labels.txt"}); },
               {"format webdataset", "--test-labels"});
  write_archive(folder_ / "tiny.tar", {{"val/val_annotations.txt", bytes_of("0.JPEG n01\n")}});
  expect_error([&] { run_in("tiny.tar", {.test = folder_ / "wds.tar"}); },
               {"format tiny-imagenet", "--test"});
  write_bytes(folder_ / "0.png", png(0));
  write_bytes(folder_ / "1.png", png(1));
  write_bytes(folder_ / "list.csv", bytes_of("path,label,split\n0.png,a,train\n1.png,a,test\n"));
  expect_error([&] { run_in("list.csv", {.test = folder_ / "wds.tar"}); },
               {"list.csv: --test", "test images of its own"});
}

TEST(CsvReader, ReadsRfc4180) {
  const auto records = [](std::string_view text) {
    CsvReader reader(text);
    std::vector<std::vector<std::string>> all;
    for (std::vector<std::string> fields; reader.next(fields);) all.push_back(fields);
    return all;
  };
  using Records = std::vector<std::vector<std::string>>;
  EXPECT_EQ(records("\xEF\xBB\xBF"
                    "a,b\r\n\"1,\"\"x\"\"\n2\",\r\n\n,z"),
            (Records{{"a", "b"}, {"1,\"x\"\n2", ""}, {"", "z"}}));
  EXPECT_EQ(records(""), Records{});
  EXPECT_EQ(records("\"\"\n"), (Records{{""}}));
  EXPECT_EQ(records("a,"), (Records{{"a", ""}}));
  expect_error([&] { records("a\n\"b\nc"); }, {"line 2", "not closed"});
  expect_error([&] { records("a\n\n\"b\"c"); }, {"line 3", "found 'c'"});
}

TEST_F(ConvertForms, ACsvFileNamesPathsAndLabels) {
  for (int i = 0; i < 4; ++i) write_bytes(folder_ / fmt::format("set/images/{}, x.png", i), png(i));
  const auto csv = [&](const std::string& text) { write_bytes(folder_ / "set/list.csv", bytes_of(text)); };
  csv("label,id,path,split\ncat,1,\"images/2, x.png\",train\ndog,2,\"images/0, x.png\",train\n"
      "dog,3,\"images/1, x.png\",val\n");
  EXPECT_EQ(run_in("set/list.csv").format, SourceFormat::csv);
  EXPECT_EQ(classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_TRUE(result().train.files == (std::vector<Bytes>{png(2), png(0)}));
  EXPECT_EQ(result().test.labels, (std::vector<std::int32_t>{1}));
  csv("path,label\n\"images/2, x.png\",7\n\"images/0, x.png\",10\n\"images/1, x.png\",7\n");
  expect_error([&] { run_in("set/list.csv"); }, {"3 images of 2 classes", "--test-share"});
  run_in("set/list.csv", {.test_share = 0.4});
  EXPECT_EQ(classes(), (std::vector<std::string>{"7", "10"}));
  EXPECT_EQ(result().train.labels.size(), 2u);
}

TEST_F(ConvertForms, MistakesInACsvFileAreNamed) {
  write_bytes(folder_ / "set/0.png", png(0));
  const auto fails = [&](const std::string& text, const std::vector<std::string>& words, bool skip = false) {
    write_bytes(folder_ / "set/list.csv", bytes_of(text));
    expect_error([&] { run_in("set/list.csv", {.skip_bad = skip}); }, words);
  };
  const std::string header = "path,label,split\n", row = "0.png,a,test\n";
  fails("file,label\n", {"list.csv", "line 1", "expected path,label"});
  fails(header + "0.png,a\n", {"list.csv", "line 2", "2 fields, expected 3"});
  fails(header + "0.png,,train\n", {"line 2", "no label"});
  fails(header + "0.png,a,dev\n", {"line 2", "split 'dev'"});
  fails(header + "\"0.png,a,train\n", {"list.csv", "line 2", "not closed"});
  fails(header + row + "1.png,a,train\n", {"1.png", "No such file", "--skip-bad"});
  fails(header + row + "1.png,a,train\n", {"training images of class a"}, true);
  fails(header + row + "0.png,a,train\n", {"0.png occurs twice"});
  fails(header + row + std::string("0.png\0,b,train\n", 16), {"line 3", "a zero byte"});
  fails(header + "0.png,a,train\n1.png,a,test\n2.png,a,VAL\n", {"found the splits 'test' and 'val'"});
  fails(header + "0.png,a ,train\n", {"line 2", "label 'a '", "without blanks"});
  fails("path,label,label\n0.png,a,b\n", {"line 1", "two columns label"});
  expect_error([&] { run_in("set/list.csv", {.root = "set"}); }, {"format csv", "--root"});
  expect_error([&] { run_in("set/list.csv", {.test_folder = "val"}); }, {"format csv", "--test-folder"});
  fails(header, {"no training images"});
}

TEST_F(ConvertForms, TinyImageNetsLayout) {
  std::vector<TarEntry> entries{{"tiny/wnids.txt", bytes_of("n02\nn01\n")},
                                {"tiny/train/n01/images/n01_0.JPEG", png(1)},
                                {"tiny/train/n02/images/n02_0.JPEG", png(2)},
                                {"tiny/train/n02/n02_boxes.txt", bytes_of("n02_0.JPEG\t0\t0\t1\t1\n")},
                                {"tiny/val/images/val_0.JPEG", png(3)},
                                {"tiny/val/images/val_1.JPEG", png(4)},
                                {"tiny/val/val_annotations.txt",
                                 bytes_of("val_0.JPEG\tn02\t0\t0\t1\t1\nval_1.JPEG\tn01\t0\t0\t1\t1\n")},
                                {"tiny/test/images/test_0.JPEG", png(5)}};
  write_archive(folder_ / "tiny.zip", entries, true);
  write_tree(folder_ / "unpacked", entries);
  for (const char* source : {"tiny.zip", "unpacked"}) {
    const ConvertReport report = run_in(source);
    EXPECT_EQ(report.format, SourceFormat::tiny_imagenet);
    EXPECT_EQ(left_out_of(report), ".txt files: 3; images without a label: 1; ");
    EXPECT_TRUE(result().test.files == (std::vector<Bytes>{png(4), png(3)}));
    EXPECT_EQ(result().test.labels, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(classes(), (std::vector<std::string>{"n01", "n02"}));
  }
  write_bytes(folder_ / "unpacked/tiny/wnids.txt", bytes_of("n01\nn02\nn03\n"));
  expect_error([&] { run_in("unpacked"); }, {"no images of n03", "wnids.txt"});
}

TEST_F(ConvertForms, TestImagesOfOtherFormatsAreNamed) {
  write_tree(folder_ / "train", {{"ant/0.png", png(1)}, {"bee/0.png", png(2)}});
  write_tree(folder_ / "test", {{"1.png", png(3)}, {"2.webp", {1}}});
  write_bytes(folder_ / "labels.txt", bytes_of("1.png ant\n2.webp bee\n"));
  ConvertOptions options{.test = folder_ / "test", .test_labels = folder_ / "labels.txt"};
  expect_error([&] { run_in("train", options); },
               {"2.webp: expected JPEG or PNG, found WebP images", "--skip-bad"});
  options.skip_bad = true;
  EXPECT_EQ(left_out_of(run_in("train", options)), "WebP images: 1; ");
  std::filesystem::remove(folder_ / "test/1.png");
  expect_error([&] { run_in("train", {.test = folder_ / "test"}); }, {"images without class folders"});
}

TEST_F(ConvertForms, LabelsByNameNeedDifferentNames) {
  write_tree(folder_ / "train", {{"ant/0.png", png(1)}, {"bee/0.png", png(2)}});
  write_tree(folder_ / "test", {{"x/1.png", png(3)}, {"y/1.png", png(4)}});
  write_bytes(folder_ / "labels.txt", bytes_of("1.png ant\n"));
  expect_error([&] { run_in("train", {.test = folder_ / "test", .test_labels = folder_ / "labels.txt"}); },
               {"x/1.png and y/1.png have the same name", "labels.txt"});
}

// Each archive is a split, as in the Places data set.
TEST_F(ConvertForms, AnArchiveASplit) {
  write_tree(folder_ / "set", {{"README", {1}}});
  write_archive(folder_ / "set/train.tar", {{"train/ant/0.png", png(1)}, {"train/bee/0.png", png(2)}});
  write_archive(folder_ / "set/val.zip", {{"ant/0.png", png(3)}}, true);
  EXPECT_EQ(run_in("set").train, 2);
  EXPECT_EQ(classes(), (std::vector<std::string>{"ant", "bee"}));
  EXPECT_TRUE(result().test.files == (std::vector<Bytes>{png(3)}));
}

}  // namespace
}  // namespace convoy::data
