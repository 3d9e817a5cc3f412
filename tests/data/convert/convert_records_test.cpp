#include <map>

#include "data/convert/convert.h"
#include "data/store/store.h"
#include "tests/data/convert/convert_support.h"

namespace convoy::data {
namespace {

using namespace testing;

// ---- CIFAR ----

// Returns CIFAR records in which pixel (c, y, x) is c * 50 + (y + x + label) % 50.
Bytes cifar_records(const std::vector<int>& labels, bool coarse) {
  Bytes bytes;
  for (const int label : labels) {
    if (coarse) bytes.push_back(7);
    bytes.push_back(static_cast<std::uint8_t>(label));
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 1024; ++i)
        bytes.push_back(static_cast<std::uint8_t>(c * 50 + (i / 32 + i % 32 + label) % 50));
    }
  }
  return bytes;
}

std::vector<NamedBytes> cifar10_files() {
  std::vector<NamedBytes> files;
  for (int i = 1; i <= 5; ++i) {
    files.push_back(
        {"cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin", cifar_records({i, i + 4}, false)});
  }
  files.push_back({"cifar-10-batches-bin/test_batch.bin", cifar_records({9, 0, 3}, false)});
  const std::string names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
  files.push_back({"cifar-10-batches-bin/batches.meta.txt", Bytes(names.begin(), names.end())});
  return files;
}

TEST(ConvertCifar, TenClassesFromAnArchiveOrAFolder) {
  const TemporaryFolder folder;
  auto files = cifar10_files();
  std::swap(files[0], files[5]);
  write_tar(folder / "cifar-10-binary.tar.gz", files, "gzip");
  for (const auto& [name, bytes] : files) write_bytes(folder / ("unpacked/" + name), bytes);
  for (const char* source : {"cifar-10-binary.tar.gz", "unpacked"}) {
    const ConvertReport report = convert(folder / source, folder / "out.h5", {});
    EXPECT_EQ(report.format, SourceFormat::cifar);
    EXPECT_EQ(report.train, 10);
    const Store store(folder / "out.h5");
    EXPECT_EQ(store.info().classes[3], "cat");
    EXPECT_EQ(store.labels(Split::train), (std::vector<std::int32_t>{1, 5, 2, 6, 3, 7, 4, 8, 5, 9}));
    EXPECT_EQ(store.labels(Split::test), (std::vector<std::int32_t>{9, 0, 3}));
    const Bytes image = image_of(store, Split::train, 1);  // this image has label 5
    for (int y : {0, 7, 31}) {
      for (int x : {0, 12, 31}) {
        for (int c = 0; c < 3; ++c) {
          EXPECT_EQ(image[static_cast<std::size_t>((y * 32 + x) * 3 + c)], c * 50 + (y + x + 5) % 50);
        }
      }
    }
  }
}

TEST(ConvertCifar, HundredClassesTakeTheFineLabel) {
  const TemporaryFolder folder;
  write_bytes(folder / "source/train.bin", cifar_records({99, 0}, true));
  write_bytes(folder / "source/test.bin", cifar_records({42}, true));
  convert(folder / "source", folder / "out.h5", {});
  const Store store(folder / "out.h5");
  EXPECT_EQ(store.info().classes.size(), 100u);
  EXPECT_EQ(store.labels(Split::train), (std::vector<std::int32_t>{99, 0}));
}

TEST(ConvertCifar, FlagsOfImageFoldersAreNotPassedOver) {
  const TemporaryFolder folder;
  for (const auto& [name, bytes] : cifar10_files()) write_bytes(folder / ("source/" + name), bytes);
  const auto attempt = [&](const ConvertOptions& options) {
    return [&folder, options] { convert(folder / "source", folder / "out.h5", options); };
  };
  expect_error(attempt({.size = 16}), {"source", "cifar", "images with --size"});
  expect_error(attempt({.channels = 1}), {"source", "cifar", "images with --channels"});
  EXPECT_FALSE(std::filesystem::exists(folder / "out.h5"));
}

TEST(ConvertCifar, DamagedFilesAreNamed) {
  const TemporaryFolder folder;
  const auto attempt = [&](std::vector<NamedBytes> files) {
    return [&folder, files] {
      std::filesystem::remove_all(folder / "source");
      for (const auto& [name, bytes] : files) write_bytes(folder / ("source/" + name), bytes);
      convert(folder / "source", folder / "out.h5", {});
    };
  };
  auto files = cifar10_files();
  files[2].content.pop_back();
  expect_error(attempt(files), {"source", "data_batch_3.bin", "6145 bytes", "multiple of 3073"});
  files = cifar10_files();
  files[1].content[3073] = 10;
  expect_error(attempt(files), {"data_batch_2.bin", "label 10 of image 1", "0 to 9"});
  files = cifar10_files();
  files.erase(files.begin() + 3);
  expect_error(attempt(files),
               {"source", "no file data_batch_4.bin", "data_batch_1.bin, ", "test_batch.bin"});
  files = cifar10_files();
  files[6].content = {'a', '\n'};
  expect_error(attempt(files), {"batches.meta.txt", "1 class names", "expected 10"});
  EXPECT_FALSE(std::filesystem::exists(folder / "out.h5"));
}

// ---- IDX ----

Bytes idx(const std::vector<std::uint32_t>& extents, const Bytes& values) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(extents.size())};
  for (const auto extent : extents) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
  }
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

std::map<std::string, Bytes> idx_files() {
  return {{"train-images-idx3-ubyte", idx({4, 5, 6}, random_bytes(120, 1))},
          {"train-labels-idx1-ubyte", idx({4}, {3, 0, 2, 1})},
          {"t10k-images-idx3-ubyte", idx({2, 5, 6}, random_bytes(60, 2))},
          {"t10k-labels-idx1-ubyte", idx({2}, {1, 1})}};
}

TEST(ConvertIdx, PlainAndGzipped) {
  const TemporaryFolder folder;
  for (const bool zipped : {false, true}) {
    for (const auto& [name, bytes] : idx_files()) {
      write_bytes(folder / (zipped ? "zipped/" + name + ".gz" : "plain/" + name),
                  zipped ? gzip(bytes, folder / "scratch") : bytes);
    }
    const ConvertReport report = convert(folder / (zipped ? "zipped" : "plain"), folder / "out.h5", {});
    EXPECT_EQ(report.format, SourceFormat::idx);
    const Store store(folder / "out.h5");
    EXPECT_EQ(store.info().shape, (ImageShape{5, 6, 1}));
    EXPECT_EQ(store.info().classes, (std::vector<std::string>{"0", "1", "2", "3"}));
    EXPECT_EQ(store.labels(Split::train), (std::vector<std::int32_t>{3, 0, 2, 1}));
    const Bytes all = random_bytes(120, 1);
    EXPECT_EQ(image_of(store, Split::train, 2), Bytes(all.begin() + 60, all.begin() + 90));
  }
}

TEST(ConvertIdx, DamagedFilesAreNamed) {
  const TemporaryFolder folder;
  const auto attempt = [&](const std::string& name, const Bytes& bytes) {
    return [&folder, name, bytes] {
      std::filesystem::remove_all(folder / "source");
      auto files = idx_files();
      if (bytes.empty()) {
        files.erase(name);
      } else {
        files[name] = bytes;
      }
      for (const auto& [file, content] : files) write_bytes(folder / ("source/" + file), content);
      convert(folder / "source", folder / "out.h5", {});
    };
  };
  const std::string images = "train-images-idx3-ubyte", labels = "train-labels-idx1-ubyte";
  expect_error(attempt(images, idx({4, 5, 6}, random_bytes(119, 1))),
               {images, "119 bytes", "120", "[4, 5, 6]"});
  expect_error(attempt(images, idx({4, 30}, random_bytes(120, 1))), {images, "IDX header", "rank 3"});
  expect_error(attempt(images, {0, 0, 8}), {images, "IDX header"});
  expect_error(attempt(images, idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {1})), {images, "expected"});
  expect_error(attempt(labels, idx({3}, {1, 2, 3})), {labels, "3 labels", "expected 4", images});
  expect_error(attempt(labels, {}), {"source", "no train labels", labels});
  expect_error(attempt("t10k-images-idx3-ubyte", idx({2, 6, 5}, random_bytes(60, 2))),
               {"t10k-images", "6x5", "5x6"});
  EXPECT_FALSE(std::filesystem::exists(folder / "out.h5"));
}

TEST(ConvertIdx, ADamagedGzipFileIsNamed) {
  const TemporaryFolder folder;
  for (const auto& [name, bytes] : idx_files()) write_bytes(folder / ("source/" + name), bytes);
  std::filesystem::remove(folder / "source/train-images-idx3-ubyte");
  Bytes zipped = gzip(idx_files()["train-images-idx3-ubyte"], folder / "scratch");
  zipped.resize(zipped.size() / 2);
  write_bytes(folder / "source/train-images-idx3-ubyte.gz", zipped);
  expect_error([&] { convert(folder / "source", folder / "out.h5", {}); }, {"train-images-idx3-ubyte.gz"});
}

}  // namespace
}  // namespace convoy::data
