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

// Counts the files that a conversion leaves out, by kind, for the last line of its output.
class LeftOut {
 public:
  void add(const std::string& kind, std::int64_t count = 1) {
    if (count > 0) counts_[kind] += count;
  }
  // Counts a file that is not part of the data set. Its kind follows from its name: a hidden file,
  // an image outside the folders of classes, or a file with some other extension.
  void add_file(const std::string& path);
  std::vector<ConvertReport::LeftOut> list() const;

 private:
  std::map<std::string, std::int64_t> counts_;
};

// The sources, options and counts of one conversion. Every layout and converter takes them.
struct Conversion {
  std::string name;  // name of the source, for messages
  std::filesystem::path destination;
  const ConvertOptions& options;
  std::unique_ptr<FileSource> source, test;  // `test` is null unless options.test is set
  // True if archives count as folders in the paths of `source`.
  bool archives_are_folders = false;
  LeftOut left_out;
  std::int64_t skipped = 0;

  // Counts what the listing could not read. Calls refuse() for an item that may be an image or a
  // folder of images.
  void account_for(const Listing& listing);
  // Throws std::runtime_error with the message. With options.skip_bad it warns instead, and counts
  // one image as skipped and as left out for the reason `kind`.
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
  // The samples of `source` and of `test`, each sorted by split and row.
  std::vector<Sample> samples, test_samples;
  StoreWriter::Sizes sizes;
};

class CatalogueBuilder {
 public:
  explicit CatalogueBuilder(Conversion& conversion) : conversion_(conversion) {}
  // `split` is empty if the source does not say to which split the image belongs.
  void add(std::string path, const std::string& class_name, std::optional<Split> split);
  void add_to_test_source(std::string path, const std::string& class_name);
  bool has_class(const std::string& name) const { return classes_.contains(name); }
  std::vector<std::string> sorted_classes() const;
  bool has_test_images() const { return has_test_; }

  // The order of the rows. `sorted`: by class, folder and file name, as in torchvision's
  // ImageFolder. `as_added`: as the images were added.
  enum class Order : std::uint8_t { sorted, as_added };
  // Sorts the classes by name, or by value if all names are whole numbers. Throws
  // std::runtime_error unless every class has training images and the test split has images.
  Catalogue finish(Order order);

 private:
  void choose_test_images(const std::vector<std::string>& names);
  void require_splits() const;
  void require_unique_paths() const;
  void require_images(const std::vector<std::string>& names) const;

  Conversion& conversion_;
  // The classes, numbered in the order in which they appear. finish() gives them their final
  // labels.
  std::map<std::string, std::int32_t> classes_;
  // The samples, with the numbers of classes_ as labels. Sample::row is -1 if the split is not
  // known yet.
  std::vector<Sample> samples_, test_samples_;
  bool has_test_ = false;
};

// Returns the extension in lower case with its dot; "" if there is none.
std::string extension_of(const std::string& path);
bool is_read_image(const std::string& path);  // true for .jpg, .jpeg, .jfif and .png
std::optional<std::string> unread_image_kind(const std::string& path);  // for example "WebP images"
// Returns whether a part of the path begins with a dot or is __MACOSX.
bool is_hidden(const std::string& path);

// Returns the split that a folder's name stands for, in upper or lower case: "train" is training;
// "test", "val", "valid" and "validation" are test.
std::optional<Split> split_of(const std::string& folder);

// Each function reads one layout of sources: it turns the listing of a source into a catalogue. It
// may move the paths out of the listing.
Catalogue image_folders(Conversion& conversion, Listing listing);
Catalogue tiny_imagenet(Conversion& conversion, Listing listing);
Catalogue webdataset(Conversion& conversion);
Catalogue csv(Conversion& conversion);
bool is_tiny_imagenet(const Listing& listing);
bool is_webdataset(const Listing& listing);

// Adds the images of conversion.test as test images. Their classes are the names of their folders,
// or come from options.test_labels.
void add_test_source(Conversion& conversion, CatalogueBuilder& builder);
void add_test_folders(Conversion& conversion, CatalogueBuilder& builder, Listing listing);

// Returns the encoding that the options name, or chooses one that suits the images and passes the
// choice and its reason to options.note.
Encoding choose_encoding(Conversion& conversion, const Catalogue& catalogue);

// The converters write the store. write_images() decodes, encodes and writes the images of a
// catalogue.
void write_images(Conversion& conversion, Catalogue catalogue, ConvertReport& report);
void convert_cifar(Conversion& conversion, const Listing& listing, ConvertReport& report);
void convert_idx(Conversion& conversion, const Listing& listing, ConvertReport& report);
bool is_cifar_path(const std::string& path);
bool is_idx_path(const std::string& path);

}  // namespace convoy::data
