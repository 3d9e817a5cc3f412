// Tests published forms of data sets that are not plain folders of images.
#include <fmt/format.h>
#include <zlib.h>

#include "data/convert/catalogue.h"
#include "data/convert/csv.h"
#include "data/convert/imagenet_devkit.h"
#include "data/store/store.h"
#include "tests/data/convert_support.h"

namespace convoy::data {
namespace {

using namespace testing;
using Form = Encoding::Form;

class ConvertForms : public ::testing::Test {
 protected:
  ConvertReport run(const std::string& source, ConvertOptions options = {}) {
    options.encoding = {Form::keep};
    return convert(source, folder_ / "out.h5", options);
  }
  ConvertReport run_in(const std::string& source, const ConvertOptions& options = {}) {
    return run(folder_ / source, options);
  }
  EncodedStore result() const { return EncodedStore(folder_ / "out.h5"); }
  std::vector<std::string> classes() const {
    const hid_t file = H5Fopen((folder_ / "out.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t attribute = H5Aopen(file, "classes", H5P_DEFAULT), type = H5Aget_type(attribute);
    const hid_t space = H5Aget_space(attribute);
    const std::size_t width = H5Tget_size(type);
    std::string text(width * static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)), '\0');
    H5Aread(attribute, type, text.data());
    std::vector<std::string> names;
    for (std::size_t at = 0; at < text.size(); at += width)
      names.emplace_back(text.substr(at, width).c_str());
    for (const auto close : {H5Sclose(space), H5Tclose(type), H5Aclose(attribute), H5Fclose(file)})
      EXPECT_GE(close, 0);
    return names;
  }

  TemporaryFolder folder_;
};

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

// ---- ImageNet ----

void append_word(Bytes& bytes, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

Bytes mat_element(std::uint32_t type, const Bytes& data) {
  Bytes bytes;
  append_word(bytes, type);
  append_word(bytes, static_cast<std::uint32_t>(data.size()));
  bytes.insert(bytes.end(), data.begin(), data.end());
  if (type != 15) bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Returns an element of a MATLAB file: an unnamed matrix that holds one value. kind: the matrix's
// class, such as 9 (uint8) or 4 (char); type: that of the stored value.
Bytes mat_value(std::uint8_t kind, std::uint32_t type, const Bytes& value) {
  return mat_element(
      14, joined({mat_element(6, {kind, 0, 0, 0, 0, 0, 0, 0}), mat_element(5, {1, 0, 0, 0, 1, 0, 0, 0}),
                  mat_element(1, {}), mat_element(type, value)}));
}

Bytes mat_head() {
  Bytes head(128, ' ');
  head[124] = 0, head[125] = 1, head[126] = 'I', head[127] = 'M';
  return head;
}

// Returns the struct array of meta.mat. `type`: that of the stored numbers; 2: uint8.
Bytes synsets_matrix(const std::vector<std::pair<Bytes, std::string>>& synsets, std::uint32_t type = 2) {
  Bytes names;
  for (const std::string name : {"ILSVRC2012_ID", "WNID", "words"}) {
    Bytes field = bytes_of(name);
    field.resize(16);
    names.insert(names.end(), field.begin(), field.end());
  }
  Bytes matrix =
      joined({mat_element(6, {2, 0, 0, 0, 0, 0, 0, 0}), mat_element(5, {2, 0, 0, 0, 1, 0, 0, 0}),
              mat_element(1, bytes_of("synsets")), Bytes{5, 0, 4, 0, 16, 0, 0, 0}, mat_element(1, names)});
  for (const auto& [id, wnid] : synsets)
    matrix = joined({matrix, mat_value(9, type, id), mat_value(4, 16, bytes_of(wnid)),
                     mat_value(4, 16, bytes_of("a cat"))});
  return matrix;
}

// Returns meta.mat as MATLAB writes it, compressed or not.
Bytes meta_mat(const std::vector<std::pair<std::uint8_t, std::string>>& synsets, bool compressed) {
  std::vector<std::pair<Bytes, std::string>> rows;
  for (const auto& [id, wnid] : synsets) rows.push_back({{id}, wnid});
  Bytes variable = mat_element(14, synsets_matrix(rows));
  if (compressed) {
    uLongf size = compressBound(variable.size());
    Bytes packed(size);
    EXPECT_EQ(compress(packed.data(), &size, variable.data(), variable.size()), Z_OK);
    packed.resize(size);
    variable = mat_element(15, packed);
  }
  return joined({mat_head(), variable});
}

TEST(ImagenetDevkit, SynsetsOfAMatFile) {
  const std::vector<std::pair<std::uint8_t, std::string>> synsets{{1, "n02"}, {2, "n01"}, {200, "n03"}};
  for (const bool compressed : {false, true}) {
    const auto found = read_synsets(meta_mat(synsets, compressed));
    EXPECT_EQ(found, (std::map<int, std::string>{{1, "n02"}, {2, "n01"}, {200, "n03"}}));
  }
  // If a byte is damaged or the file is cut short, there must be an error, not a crash.
  const Bytes good = meta_mat(synsets, false);
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= 0xFF;
    Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(i));
    for (const Bytes& file : {bad, cut}) {
      try {
        read_synsets(file);
      } catch (const std::runtime_error&) {
      }
    }
  }
}

// Programs store the numbers in several types: MATLAB as uint8, SciPy as int64 or double. Each type
// of the format is tried with the bytes that SciPy's savemat() writes for 5 and -5.
TEST(ImagenetDevkit, NumbersMayHaveAnyType) {
  const auto numbers = [](std::uint32_t type, const Bytes& value) {
    return read_synsets(joined({mat_head(), mat_element(14, synsets_matrix({{value, "n01"}}, type))}));
  };
  const std::map<int, std::string> five{{5, "n01"}};
  for (const auto& [type, size] :
       {std::pair(1, 1), {2, 1}, {3, 2}, {4, 2}, {5, 4}, {6, 4}, {12, 8}, {13, 8}}) {
    Bytes value(static_cast<std::size_t>(size));
    value[0] = 5;
    EXPECT_EQ(numbers(static_cast<std::uint32_t>(type), value), five) << type;
  }
  EXPECT_EQ(numbers(7, {0, 0, 0xA0, 0x40}), five);
  EXPECT_EQ(numbers(9, {0, 0, 0, 0, 0, 0, 0x14, 0x40}), five);
  for (const auto& [type, size] : {std::pair(1, 1), {3, 2}, {5, 4}, {12, 8}}) {
    Bytes minus(static_cast<std::size_t>(size), 0xFF);
    minus[0] = 0xFB;
    expect_error([&] { numbers(static_cast<std::uint32_t>(type), minus); }, {"no synsets"});
  }
}

class ConvertImagenet : public ConvertForms {
 protected:
  ConvertImagenet() {
    std::filesystem::create_directories(folder_ / "in");
    std::vector<TarEntry> train;
    for (const auto& [wnid, tone] : {std::pair("n01", 1), std::pair("n02", 2)}) {
      write_archive(folder_ / "inner.tar", {{fmt::format("{}_7.JPEG", wnid), png(tone)},
                                            {fmt::format("{}_10.JPEG", wnid), png(tone + 10)}});
      train.push_back({fmt::format("{}.tar", wnid), read_bytes(folder_ / "inner.tar")});
    }
    write_archive(folder_ / "in/ILSVRC2012_img_train.tar", train);
    write_archive(folder_ / "in/ILSVRC2012_img_val.tar", {{"ILSVRC2012_val_00000001.JPEG", png(31)},
                                                          {"ILSVRC2012_val_00000002.JPEG", png(32)},
                                                          {"ILSVRC2012_val_00000003.JPEG", png(33)}});
    const std::string kit = "ILSVRC2012_devkit_t12/data/";
    write_tar(folder_ / "in/ILSVRC2012_devkit_t12.tar.gz",
              {{kit + "ILSVRC2012_validation_ground_truth.txt", bytes_of("2\n1\n1\n")},
               {kit + "meta.mat", meta_mat({{1, "n02"}, {2, "n01"}}, true)}},
              "gzip");
  }
  void expect_set() {
    const EncodedStore store = result();
    EXPECT_TRUE(store.train.files == (std::vector<Bytes>{png(11), png(1), png(12), png(2)}));
    EXPECT_EQ(store.train.labels, (std::vector<std::int32_t>{0, 0, 1, 1}));
    EXPECT_TRUE(store.test.files == (std::vector<Bytes>{png(31), png(32), png(33)}) ||
                store.test.labels == (std::vector<std::int32_t>{0, 1, 1}));
    EXPECT_EQ(store.test.labels, (std::vector<std::int32_t>{0, 1, 1}));
    EXPECT_EQ(classes(), (std::vector<std::string>{"n01", "n02"}));
  }
};

TEST_F(ConvertImagenet, ItsOwnArchives) {
  const ConvertReport report = run_in("in");
  EXPECT_EQ(report.train, 4);
  EXPECT_EQ(left_out_of(report), "");
  expect_set();
}

TEST_F(ConvertImagenet, LabelsFromOtherFiles) {
  ConvertOptions options{.test = folder_ / "in/ILSVRC2012_img_val.tar",
                         .test_labels = folder_ / "labels.txt"};
  const auto labels = [&](const std::string& text) { write_bytes(folder_ / "labels.txt", bytes_of(text)); };
  const std::string val = "ILSVRC2012_val_0000000", train = "in/ILSVRC2012_img_train.tar";
  for (const std::string& text :
       {val + "1.JPEG 0\n" + val + "3.JPEG 1\n" + val + "2.JPEG 1\n",        // as Caffe's lists
        val + "2.JPEG n02\n" + val + "1.JPEG n01\n" + val + "3.JPEG n02\n",  // class names
        "ImageId,PredictionString\n" + val + "3,n02 1 2 3 4 \n" + val + "1,n01 1 2 3 4 n01 5 6 7 8\n" + val +
            "2,n02 1 1 1 1\n",  // as Kaggle's lists
        std::string("n01\nn02\nn02\n")}) {
    SCOPED_TRACE(text);
    labels(text);
    run_in(train, options);
    expect_set();
  }
  labels("n01\nn02\n");
  expect_error([&] { run_in(train, options); }, {"labels.txt", "2 labels, expected 3"});
  labels(val + "1.JPEG 0\n");
  expect_error([&] { run_in(train, options); }, {val + "2.JPEG", "no label in", "labels.txt"});
  labels(val + "1.JPEG 0\n" + val + "1.JPEG 1\n");
  expect_error([&] { run_in(train, options); }, {"labels.txt", val + "1.JPEG has the labels 0 and 1"});
  labels("n01\nn02\nn03\n");
  expect_error([&] { run_in(train, options); }, {"class n03 has no training images"});
  std::filesystem::remove(folder_ / "in/ILSVRC2012_devkit_t12.tar.gz");
  expect_error([&] { run_in("in"); }, {"ILSVRC2012_img_val.tar", "--test-labels"});
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
