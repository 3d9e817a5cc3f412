// CIFAR's binary version (Krizhevsky, https://www.cs.toronto.edu/~kriz/cifar.html): records of one label byte
// (CIFAR-100: coarse label, fine label) and 3072 pixel bytes, a plane a channel, red first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include "data/convert/convert.h"
#include "data/store/writer.h"

namespace convoy::data {
namespace {

constexpr ImageShape kShape{32, 32, 3};
constexpr std::size_t kPlane = 32 * 32;

struct Variant {
  std::int32_t classes;
  std::size_t label_bytes;  // the last of them is the label
  std::vector<std::string> train;
  std::string test, names;
};

const Variant& cifar10() {
  static const Variant variant{
      10,
      1,
      {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
      "test_batch.bin",
      "batches.meta.txt"};
  return variant;
}

const Variant& cifar100() {
  static const Variant variant{100, 2, {"train.bin"}, "test.bin", "fine_label_names.txt"};
  return variant;
}

bool contains(const Variant& variant, const std::string& file) {
  return file == variant.test || file == variant.names ||
         std::find(variant.train.begin(), variant.train.end(), file) != variant.train.end();
}

std::string file_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

struct Records {
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
};

void append(Records& records, const Bytes& content, const Variant& variant, const std::string& name) {
  const std::size_t record = variant.label_bytes + kPlane * 3;
  if (content.empty() || content.size() % record != 0) {
    throw std::runtime_error(
        fmt::format("{}: {} bytes, expected a multiple of {}", name, content.size(), record));
  }
  for (std::size_t at = 0; at < content.size(); at += record) {
    const std::int32_t label = content[at + variant.label_bytes - 1];
    if (label >= variant.classes) {
      throw std::runtime_error(fmt::format("{}: label {} of image {} is out of range, expected 0 to {}", name,
                                           label, at / record, variant.classes - 1));
    }
    records.labels.push_back(label);
    const std::uint8_t* planes = content.data() + at + variant.label_bytes;
    for (std::size_t i = 0; i < kPlane; ++i) {
      for (std::size_t c = 0; c < 3; ++c) records.images.push_back(planes[c * kPlane + i]);
    }
  }
}

std::vector<std::string> class_names(const std::map<std::string, Bytes>& files, const Variant& variant,
                                     const std::string& source) {
  std::vector<std::string> names;
  if (const auto meta = files.find(variant.names); meta != files.end()) {
    std::istringstream lines(std::string(meta->second.begin(), meta->second.end()));
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (!line.empty()) names.push_back(line);
    }
    if (names.size() != static_cast<std::size_t>(variant.classes)) {
      throw std::runtime_error(fmt::format("{}: {}: {} class names, expected {}", source, variant.names,
                                           names.size(), variant.classes));
    }
    return names;
  }
  for (std::int32_t i = 0; i < variant.classes; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

bool is_cifar_path(const std::string& path) {
  const std::string file = file_of(path);
  return file == cifar10().train[0] || file == cifar100().train[0];
}

ConvertReport convert_cifar(const Conversion& conversion) {
  std::map<std::string, Bytes> files;
  conversion.files.visit([&](const std::string& path, const auto& read) {
    const std::string file = file_of(path);
    if (!contains(cifar10(), file) && !contains(cifar100(), file)) return true;
    if (!files.emplace(file, read()).second) {
      throw std::runtime_error(fmt::format("{}: {} occurs twice", conversion.name, file));
    }
    return true;
  });
  const Variant& variant = files.contains(cifar100().train[0]) ? cifar100() : cifar10();
  const auto records_of = [&](const std::vector<std::string>& parts) {
    Records records;
    for (const std::string& part : parts) {
      const auto found = files.find(part);
      if (found == files.end()) {
        throw std::runtime_error(fmt::format("{}: no file {}, expected {} and {}", conversion.name, part,
                                             fmt::join(variant.train, ", "), variant.test));
      }
      append(records, found->second, variant, fmt::format("{}: {}", conversion.name, part));
    }
    return records;
  };
  const Records train = records_of(variant.train), test = records_of({variant.test});
  ConvertReport report;
  report.train = static_cast<std::int64_t>(train.labels.size());
  report.test = static_cast<std::int64_t>(test.labels.size());
  StoreWriter writer(conversion.destination, kShape, class_names(files, variant, conversion.name),
                     {report.train, report.test});
  writer.write(Split::train, 0, train.images, train.labels);
  writer.write(Split::test, 0, test.images, test.labels);
  writer.finish();
  return report;
}

}  // namespace convoy::data
