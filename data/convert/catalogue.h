// The plan of a conversion. It says which image file becomes which row of the store, with which
// label.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/convert/convert.h"
#include "data/convert/file_source.h"
#include "data/store/writer.h"

namespace convoy::data {

inline constexpr const char* kUnreadable = "links and folders that cannot be read";

// Counts the files that a conversion leaves out, by kind. The command prints the counts at its end.
class LeftOutCounter {
 public:
  void add(const std::string& kind, std::int64_t count = 1) {
    if (count > 0) counts_[kind] += count;
  }
  // Counts a file that does not belong to the data set. The name of the file decides its kind:
  // hidden file, image outside the class folders, or file with another extension.
  void add_file(const std::string& path);
  std::vector<ConvertReport::LeftOut> list() const;

 private:
  std::map<std::string, std::int64_t> counts_;
};

// The sources, options and counts of one conversion.
struct Conversion {
  std::string name;  // name of the source, for messages
  std::filesystem::path destination;
  const ConvertOptions& options;
  std::unique_ptr<FileSource> source, test;  // `test` is null unless options.test is set
  // True if archives count as folders in the paths of `source`.
  bool archives_are_folders = false;
  LeftOutCounter left_out;
  std::int64_t skipped = 0;

  // Calls refuse() for each entry of listing.unreadable that may_hold_images(). Counts the other
  // unreadable entries, special files and names that lead out of the archive as left out.
  void account_for(const Listing& listing);
  // Names an item that cannot be read in a warning and counts it as left out.
  void leave_out(const Unreadable& item);
  // Returns whether a file is an image that is read. Calls refuse() for an image of another format,
  // with `shown` for the name of the file, and counts any other file as left out.
  bool takes(const std::string& path, const std::string& shown);
  // Throws std::runtime_error with the message. If options.skip_bad is set, it warns instead,
  // counts the image as skipped and adds it to left_out under `kind`.
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
  // The samples of Conversion::source and of Conversion::test, each sorted by split and row.
  std::vector<Sample> samples, test_samples;
  StoreWriter::Sizes sizes;
};

class CatalogueBuilder {
 public:
  // The order of classes and rows. `sorted`: classes by name, and rows by class, folder and file
  // name, as in torchvision's ImageFolder. `as_added`: classes by value if all names are whole
  // numbers and by name otherwise, and rows in the order of the calls of add().
  enum class Order : std::uint8_t { sorted, as_added };
  CatalogueBuilder(Conversion& conversion, Order order) : conversion_(conversion), order_(order) {}
  // `split` is empty if the source does not say to which split the image belongs.
  void add(std::string path, const std::string& class_name, std::optional<Split> split);
  void add_to_test_source(std::string path, const std::string& class_name);
  bool has_class(const std::string& name) const { return classes_.contains(name); }
  std::vector<std::string> sorted_classes() const;
  bool has_test_images() const { return has_test_; }

  // Throws std::runtime_error unless every class has training images and the test split has images.
  Catalogue finish();

 private:
  void choose_test_images(const std::vector<std::string>& names);
  void require_splits() const;
  void require_unique_paths() const;
  void require_images(const std::vector<std::string>& names) const;

  Conversion& conversion_;
  const Order order_;
  // Maps a class name to a preliminary label, numbered in order of appearance. finish() assigns the
  // final labels.
  std::map<std::string, std::int32_t> classes_;
  // The samples, with preliminary labels. Sample::row is -1 if the split is not known yet.
  std::vector<Sample> samples_, test_samples_;
  bool has_test_ = false;
};

// Returns the extension in lower case with its dot; "" if there is none.
std::string extension_of(const std::string& path);
bool is_read_image(const std::string& path);  // true for the extensions of JPEG and PNG files
std::optional<std::string> unread_image_kind(const std::string& path);  // for example "WebP images"
// Returns whether a part of the path begins with a dot or is __MACOSX.
bool is_hidden(const std::string& path);
// Returns whether the file is not hidden and has the extension of an image, read or unread.
bool is_image(const std::string& path);

// The names of the split that a source gives to test images. Some sources have "val" and "test".
class TestNames {
 public:
  // Returns the split for `name` as split_of() does, and keeps the name if it is the test split.
  std::optional<Split> split_of(const std::string& name);
  // Throws std::runtime_error that begins with `source` if several names have been kept, because
  // images for validation must not be tested together with those for the last test.
  void require_one(const std::string& source) const;

 private:
  std::set<std::string> names_;
};

// Returns whether an item that cannot be read may be an image or a folder of images.
bool may_hold_images(const Unreadable& item);

// Returns the split for a folder's name, in upper or lower case: "train" and "training" are the
// training split; "test", "testing", "val", "valid" and "validation" are the test split.
std::optional<Split> split_of(const std::string& folder);

// Each of these functions reads one layout of sources: it turns the listing of a source into a
// catalogue. It may move the paths out of the listing.
Catalogue image_folders(Conversion& conversion, Listing listing);
Catalogue tiny_imagenet(Conversion& conversion, Listing listing);
Catalogue webdataset(Conversion& conversion);
Catalogue csv(Conversion& conversion);
bool is_tiny_imagenet(const Listing& listing);
bool is_webdataset(const Listing& listing);

// Adds the images of conversion.test as test images. The class of an image is the name of its
// folder, unless options.test_labels names a file with labels.
void add_test_source(Conversion& conversion, CatalogueBuilder& builder);
void add_test_folders(Conversion& conversion, CatalogueBuilder& builder, Listing listing);

// Returns the encoding that the options name. If they name none, chooses one that suits the images
// and reports it with the reason through options.note.
Encoding choose_encoding(Conversion& conversion, const Catalogue& catalogue);

// These functions write the store. write_images() decodes, encodes and writes the images of a
// catalogue; the others convert one format each.
void write_images(Conversion& conversion, Catalogue catalogue, ConvertReport& report);
void convert_cifar(Conversion& conversion, const Listing& listing, ConvertReport& report);
void convert_idx(Conversion& conversion, const Listing& listing, ConvertReport& report);
bool is_cifar_path(const std::string& path);
bool is_idx_path(const std::string& path);

}  // namespace convoy::data
