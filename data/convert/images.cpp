// Image folders and archives of them. Two passes over the source: the first learns the names, and with them
// the classes and every image's row in the store; the second decodes, a batch at a time on several threads.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "data/convert/convert.h"
#include "data/image/decode.h"
#include "data/image/resample.h"
#include "data/parallel.h"
#include "data/store/writer.h"

namespace convoy::data {
namespace {

constexpr std::size_t kBatchFiles = 512;
constexpr std::size_t kBatchBytes = 64 << 20;

struct Place {
  Split split = Split::train;
  std::string class_name, file;
};

// [PREFIX/]SPLIT/CLASS/FILE with a file that looks like an image and is not hidden.
std::optional<Place> place_of(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::filesystem::path file = whole.filename(), label = whole.parent_path().filename();
  const std::string split = whole.parent_path().parent_path().filename().string();
  std::string extension = file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool image = extension == ".jpg" || extension == ".jpeg" || extension == ".png";
  const bool test = split == "test" || split == "val";
  if (!image || file.string()[0] == '.' || label.empty() || label.string()[0] == '.' ||
      (split != "train" && !test)) {
    return std::nullopt;
  }
  return Place{test ? Split::test : Split::train, label.string(), file.string()};
}

// A class that lost its images would move the labels of all behind it.
void require_no_empty_class(const Conversion& conversion, const std::set<std::string>& classes) {
  for (const std::string& folder : conversion.files.folders()) {
    const std::filesystem::path path(folder);
    const std::string label = path.filename().string();
    if (path.parent_path().filename() != "train" || label[0] == '.' || classes.contains(label)) continue;
    throw std::runtime_error(fmt::format("{}: {}: holds no images, expected some in every class's folder",
                                         conversion.name, folder));
  }
}

struct Row {
  Split split = Split::train;
  std::int64_t number = 0;
  std::int32_t label = 0;
};

struct Catalogue {
  std::map<std::string, Row> rows;  // by path in the source
  std::vector<std::string> classes;
  StoreWriter::Sizes sizes;
};

Catalogue catalogue_of(const Conversion& conversion) {
  Catalogue catalogue;
  std::set<std::string> names, test_folders;
  std::map<std::string, Place> places;
  conversion.files.visit([&](const std::string& path, const auto&) {
    const auto place = place_of(path);
    if (!place) return true;
    if (!places.emplace(path, *place).second) {
      throw std::runtime_error(fmt::format("{}: {} occurs twice", conversion.name, path));
    }
    const auto split_folder = std::filesystem::path(path).parent_path().parent_path();
    if (place->split == Split::train) names.insert(place->class_name);
    if (place->split == Split::test) test_folders.insert(split_folder.filename().string());
    return true;
  });
  if (test_folders.size() > 1) {
    throw std::runtime_error(
        fmt::format("{}: has both test/ and val/, expected one of them", conversion.name));
  }
  require_no_empty_class(conversion, names);
  catalogue.classes.assign(names.begin(), names.end());
  for (const auto& [path, place] : places) {  // in the order of the paths: the rows' order
    const auto found = std::lower_bound(catalogue.classes.begin(), catalogue.classes.end(), place.class_name);
    if (found == catalogue.classes.end() || *found != place.class_name) {
      throw std::runtime_error(fmt::format("{}: {}: class {} has no images under train/", conversion.name,
                                           path, place.class_name));
    }
    auto& count = place.split == Split::train ? catalogue.sizes.train : catalogue.sizes.test;
    catalogue.rows[path] = {place.split, count++,
                            static_cast<std::int32_t>(found - catalogue.classes.begin())};
  }
  if (catalogue.sizes.train == 0 || catalogue.sizes.test == 0) {
    throw std::runtime_error(fmt::format(
        "{}: {} images in train/CLASS/ and {} in test/CLASS/ or val/CLASS/, expected some in both",
        conversion.name, catalogue.sizes.train, catalogue.sizes.test));
  }
  return catalogue;
}

Image fit(Image image, int size) {
  if (size == 0) return image;
  const ImageShape from = image.shape;
  // The centre square of the source, scaled: the same pixels as resizing the shorter side and cutting then.
  const auto side = static_cast<std::int32_t>(std::min(from.height, from.width));
  const Window window{static_cast<std::int32_t>(from.width - side) / 2,
                      static_cast<std::int32_t>(from.height - side) / 2, side, side};
  Image result{{size, size, from.channels}, {}};
  result.pixels.resize(static_cast<std::size_t>(result.shape.bytes()));
  Resampler().resize(image.pixels.data(), from, window, size, size, result.pixels.data());
  return result;
}

class ImageConverter {
 public:
  explicit ImageConverter(const Conversion& conversion)
      : conversion_(conversion), catalogue_(catalogue_of(conversion)) {}

  ConvertReport run() {
    std::size_t bytes = 0;
    conversion_.files.visit([&](const std::string& path, const auto& read) {
      const auto row = catalogue_.rows.find(path);
      if (row == catalogue_.rows.end()) return true;
      batch_.push_back({path, row->second, read(), {}, {}});
      bytes += batch_.back().content.size();
      if (batch_.size() < kBatchFiles && bytes < kBatchBytes) return true;
      flush();
      bytes = 0;
      return true;
    });
    flush();
    if (!writer_) throw std::runtime_error(conversion_.name + ": no image could be decoded");
    writer_->finish();
    return report_;
  }

 private:
  struct Item {
    std::string path;
    Row row;
    Bytes content;
    Image image;
    std::string error;
  };

  void flush() {
    const int size = conversion_.options.size, channels = conversion_.options.channels;
    parallel_for(batch_.size(), conversion_.options.threads, [&](std::size_t i) {
      try {
        batch_[i].image = fit(decode_image(batch_[i].content, channels), size);
      } catch (const std::runtime_error& error) {
        batch_[i].error = error.what();
      }
    });
    for (const Item& item : batch_) check(item);
    write_runs();
    batch_.clear();
  }

  void check(const Item& item) {
    const std::string name = fmt::format("{}: {}", conversion_.name, item.path);
    if (!item.error.empty()) {
      if (!conversion_.options.skip_bad) {
        throw std::runtime_error(fmt::format("{}: {} (--skip-bad leaves such files out)", name, item.error));
      }
      conversion_.options.warn(fmt::format("skipped {}: {}", name, item.error));
      ++report_.skipped;
      return;
    }
    if (!writer_) {
      shape_ = item.image.shape;
      first_ = item.path;
      writer_.emplace(conversion_.destination, shape_, catalogue_.classes, catalogue_.sizes);
    }
    if (item.image.shape != shape_) {
      throw std::runtime_error(fmt::format("{}: {}x{} pixels, expected {}x{} as in {} (--size S resizes all)",
                                           name, item.image.shape.width, item.image.shape.height,
                                           shape_.width, shape_.height, first_));
    }
    ++(item.row.split == Split::train ? report_.train : report_.test);
  }

  // Rows that follow one another are written in one piece.
  void write_runs() {
    std::vector<std::uint8_t> images;
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const Item& item = batch_[i];
      if (!item.error.empty()) continue;
      images.insert(images.end(), item.image.pixels.begin(), item.image.pixels.end());
      labels.push_back(item.row.label);
      const bool continues = i + 1 < batch_.size() && batch_[i + 1].error.empty() &&
                             batch_[i + 1].row.split == item.row.split &&
                             batch_[i + 1].row.number == item.row.number + 1;
      if (continues) continue;
      const auto rows = static_cast<std::int64_t>(labels.size());
      writer_->write(item.row.split, item.row.number - rows + 1, images, labels);
      images.clear();
      labels.clear();
    }
  }

  const Conversion& conversion_;
  Catalogue catalogue_;
  std::optional<StoreWriter> writer_;
  ImageShape shape_;
  std::string first_;
  std::vector<Item> batch_;
  ConvertReport report_;
};

}  // namespace

bool is_image_path(const std::string& path) { return place_of(path).has_value(); }

ConvertReport convert_images(const Conversion& conversion) { return ImageConverter(conversion).run(); }

}  // namespace convoy::data
