// Tests the conversion of ImageNet's own archives, and the file of its development kit that numbers
// the classes.
#include <fmt/format.h>
#include <zlib.h>

#include <stdexcept>

#include "data/convert/imagenet_devkit.h"
#include "data/store/store.h"
#include "tests/data/convert/convert_forms.h"

namespace convoy::data {
namespace {

using namespace testing;

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
  write_bytes(folder_ / "in/readme.txt", {1});
  write_bytes(folder_ / "in/ILSVRC2012_img_test_v10102019.tar", {1});
  write_bytes(folder_ / "in/sub/1.png", {1});
  EXPECT_EQ(left_out_of(run_in("in")), ".tar files: 1; .txt files: 1; images outside class folders: 1; ");
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

}  // namespace
}  // namespace convoy::data
