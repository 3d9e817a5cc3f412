// Reads CIFAR's binary version (Krizhevsky, https://www.cs.toronto.edu/~kriz/cifar.html). A record
// is one label byte (in CIFAR-100 two: coarse and fine label) and 3072 pixel bytes: one plane of
// 32x32 for each of red, green and blue.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include "data/class_names.h"
#include "data/convert/catalogue.h"
#include "data/convert/records.h"

namespace convoy::data {
namespace {

constexpr ImageShape kShape{32, 32, 3};
constexpr std::size_t kPlane = 32 * 32;

struct Variant {
  std::int32_t classes;
  std::size_t label_bytes;  // bytes before the pixels; the last one is the label
  std::vector<std::string> train;
  std::string test, names;
  std::size_t record() const { return label_bytes + kPlane * 3; }
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

std::string file_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

bool holds_images(const Variant& variant, const std::string& file) {
  return file == variant.test ||
         std::find(variant.train.begin(), variant.train.end(), file) != variant.train.end();
}

std::vector<std::string> class_names(const std::string& meta, const Variant& variant,
                                     const std::string& source) {
  std::vector<std::string> names;
  std::istringstream lines(meta);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (meta.empty())
    for (std::int32_t i = 0; i < variant.classes; ++i) names.push_back(std::to_string(i));
  if (names.size() != static_cast<std::size_t>(variant.classes)) {
    throw std::runtime_error(fmt::format("{}: {}: {} class names, expected {}", source, variant.names,
                                         names.size(), variant.classes));
  }
  require_class_names(names, fmt::format("{}: {}", source, variant.names));
  return names;
}

// Reads the source twice, because its files may come in any order. The first pass counts the
// records of each file, and the second pass writes them.
class CifarConverter {
 public:
  CifarConverter(Conversion& conversion, const Variant& variant)
      : conversion_(conversion), variant_(variant) {}

  void run(ConvertReport& report) {
    std::string meta;
    conversion_.source->visit([&](const std::string& path, const FileSource::Content& content) {
      const std::string file = file_of(path);
      if (file == variant_.names) {
        const Bytes bytes = content.read({});
        meta.assign(bytes.begin(), bytes.end());
      } else if (holds_images(variant_, file)) {
        count(file, content);
      } else {
        conversion_.left_out.add_file(path);
      }
      return true;
    });
    std::int64_t train = 0;
    for (const std::string& part : variant_.train) {
      first_[part] = train;
      train += records_of(part);
    }
    StoreWriter writer(conversion_.destination, kShape, class_names(meta, variant_, conversion_.name),
                       {train, records_of(variant_.test)});
    conversion_.source->visit([&](const std::string& path, const FileSource::Content& content) {
      if (holds_images(variant_, file_of(path))) write(file_of(path), content, writer);
      return true;
    });
    writer.finish();
    report.train = train;
    report.test = records_of(variant_.test);
    report.classes = variant_.classes;
  }

 private:
  void count(const std::string& file, const FileSource::Content& content) {
    std::int64_t count = 0;
    Records records(variant_.record(), [&](std::span<const std::uint8_t> bytes) {
      for (std::size_t at = 0; at < bytes.size(); at += variant_.record(), ++count) {
        const int label = bytes[at + variant_.label_bytes - 1];
        if (label >= variant_.classes)
          throw std::runtime_error(
              fmt::format("{}: {}: label {} of image {} is out of range, expected 0 to {}", conversion_.name,
                          file, label, count, variant_.classes - 1));
      }
    });
    content.stream([&](auto bytes) { records.add(bytes); });
    if (count == 0 || records.rest() != 0)
      throw std::runtime_error(fmt::format("{}: {}: {} bytes, expected a multiple of {}", conversion_.name,
                                           file, records.bytes(), variant_.record()));
    if (!counts_.emplace(file, count).second)
      throw std::runtime_error(fmt::format("{}: {} occurs twice", conversion_.name, file));
  }

  std::int64_t records_of(const std::string& file) const {
    const auto found = counts_.find(file);
    if (found == counts_.end())
      throw std::runtime_error(fmt::format("{}: no file {}, expected {} and {}", conversion_.name, file,
                                           fmt::join(variant_.train, ", "), variant_.test));
    return found->second;
  }

  void write(const std::string& file, const FileSource::Content& content, StoreWriter& writer) const {
    const Split split = file == variant_.test ? Split::test : Split::train;
    std::int64_t row = split == Split::test ? 0 : first_.at(file);
    Bytes images;
    std::vector<std::int32_t> labels;
    Records records(variant_.record(), [&](std::span<const std::uint8_t> bytes) {
      images.clear();
      labels.clear();
      for (std::size_t at = 0; at < bytes.size(); at += variant_.record()) {
        labels.push_back(bytes[at + variant_.label_bytes - 1]);
        const std::uint8_t* planes = bytes.data() + at + variant_.label_bytes;
        for (std::size_t i = 0; i < kPlane; ++i)
          for (std::size_t c = 0; c < 3; ++c) images.push_back(planes[c * kPlane + i]);
      }
      writer.write(split, row, images, labels);
      row += static_cast<std::int64_t>(labels.size());
    });
    content.stream([&](auto bytes) { records.add(bytes); });
  }

  Conversion& conversion_;
  const Variant& variant_;
  std::map<std::string, std::int64_t> counts_, first_;
};

}  // namespace

bool is_cifar_path(const std::string& path) {
  const std::string file = file_of(path);
  return file == cifar10().train[0] || file == cifar100().train[0];
}

void convert_cifar(Conversion& conversion, const Listing& listing, ConvertReport& report) {
  const bool fine = std::any_of(listing.files.begin(), listing.files.end(),
                                [](const std::string& path) { return file_of(path) == cifar100().train[0]; });
  CifarConverter(conversion, fine ? cifar100() : cifar10()).run(report);
}

}  // namespace convoy::data
