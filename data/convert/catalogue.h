// The plan of a conversion: it says which files go into which rows, under which labels.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/convert/convert.h"
#include "data/convert/file_source.h"
#include "data/store/writer.h"

namespace convoy::data {

inline constexpr const char* kUnreadable = "links and folders that cannot be read";

// Counts what is left out by kind, for the closing line.
class LeftOut {
 public:
  void add(const std::string& kind, std::int64_t count = 1) {
    if (count > 0) counts_[kind] += count;
  }
  // A file that is none of the set's: counted as hidden or by its extension.
  void add_file(const std::string& path);
  std::vector<ConvertReport::LeftOut> list() const;

 private:
  std::map<std::string, std::int64_t> counts_;
};

// The sources and the account of one conversion, as the layouts and converters see it.
struct Conversion {
  std::string name;  // of the source, for messages
  std::filesystem::path destination;
  const ConvertOptions& options;
  std::unique_ptr<FileSource> source, test;  // test: only if options.test is set
  bool archives_are_folders = false;         // in the paths of `source`
  LeftOut left_out;
  std::int64_t skipped = 0;

  // Counts what could not be listed; names that may be images' are refused.
  void account_for(const Listing& listing);
  // Throws the message, or with skip_bad warns and counts an unreadable image.
  void refuse(const std::string& message, const std::string& kind);
};

struct Sample {
  std::string path;
  std::int64_t row = 0;
  std::int32_t label = 0;
  Split split = Split::train;
};

struct Catalogue {
  std::vector<std::string> classes;
  // From each source, in the order of splits and rows.
  std::vector<Sample> samples, test_samples;
  StoreWriter::Sizes sizes;
};

class CatalogueBuilder {
 public:
  explicit CatalogueBuilder(Conversion& conversion) : conversion_(conversion) {}
  // split: nothing if the source does not say.
  void add(std::string path, const std::string& class_name, std::optional<Split> split);
  void add_to_test_source(std::string path, const std::string& class_name);
  bool has_class(const std::string& name) const { return classes_.contains(name); }
  std::vector<std::string> sorted_classes() const;
  bool has_test_images() const { return has_test_; }

  // The rows' order: by class, folder and file name, as torchvision's ImageFolder has it, or as
  // they were added.
  enum class Order : std::uint8_t { sorted, as_added };
  // The classes are those of the training images: in alphabetical order, or as numbers if all are
  // whole numbers.
  Catalogue finish(Order order);

 private:
  void choose_test_images(const std::vector<std::string>& names);
  void require_splits() const;
  void require_unique_paths() const;
  void require_images(const std::vector<std::string>& names) const;

  Conversion& conversion_;
  std::map<std::string, std::int32_t> classes_;  // name -> order of appearance
  std::vector<Sample> samples_, test_samples_;   // label: order of appearance; row: -1 without a split
  bool has_test_ = false;
};

// The extension in lower case with its dot; "" if there is none.
std::string extension_of(const std::string& path);
bool is_read_image(const std::string& path);                            // .jpg .jpeg .jfif .png
std::optional<std::string> unread_image_kind(const std::string& path);  // "WebP images"
bool is_hidden(const std::string& path);  // any part begins with a dot, or __MACOSX

// A split's folder name in any spelling: train; test, val, valid, validation.
std::optional<Split> split_of(const std::string& folder);

// The layouts. Each reads what it needs of the listing and takes the names out of it.
Catalogue image_folders(Conversion& conversion, Listing listing);
Catalogue tiny_imagenet(Conversion& conversion, Listing listing);
Catalogue webdataset(Conversion& conversion);
Catalogue csv(Conversion& conversion);
bool is_tiny_imagenet(const Listing& listing);
bool is_webdataset(const Listing& listing);

// Adds the test images of conversion.test: class folders, or images whose labels
// options.test_labels gives.
void add_test_source(Conversion& conversion, CatalogueBuilder& builder);
void add_test_folders(Conversion& conversion, CatalogueBuilder& builder, Listing listing);

// The encoding that the options name, or one that suits the images; the latter is noted with its
// reason.
Encoding choose_encoding(Conversion& conversion, const Catalogue& catalogue);

// The converters. write_images decodes, encodes and writes a catalogue's images.
void write_images(Conversion& conversion, Catalogue catalogue, ConvertReport& report);
void convert_cifar(Conversion& conversion, const Listing& listing, ConvertReport& report);
void convert_idx(Conversion& conversion, const Listing& listing, ConvertReport& report);
bool is_cifar_path(const std::string& path);
bool is_idx_path(const std::string& path);

}  // namespace convoy::data
