#include "data/convert/convert.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <system_error>

#include "data/convert/catalogue.h"
#include "data/convert/folder_source.h"
#include "data/path_kind.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

bool any_file(const Listing& listing, bool (*matches)(const std::string&)) {
  return std::any_of(listing.files.begin(), listing.files.end(), matches);
}

SourceFormat recognise(const Listing& listing) {
  if (any_file(listing, is_idx_path)) return SourceFormat::idx;
  if (any_file(listing, is_cifar_path)) return SourceFormat::cifar;
  if (is_tiny_imagenet(listing)) return SourceFormat::tiny_imagenet;
  if (is_webdataset(listing)) return SourceFormat::webdataset;
  return any_file(listing, is_image) ? SourceFormat::images : SourceFormat::automatic;
}

// Throws if the destination is a source, because the finished store is renamed to its destination
// and would replace the source.
void refuse_same_file(const fs::path& source, const fs::path& destination) {
  std::error_code unknown;  // usually the destination does not exist yet
  if (fs::equivalent(source, destination, unknown))
    throw std::runtime_error(
        fmt::format("{}: both the source and the file to write, expected two", destination.string()));
}

// Throws if the source of the test images is the source itself, because a test on training images
// tells nothing.
void refuse_source_as_test(const fs::path& source, const ConvertOptions& options) {
  std::error_code unknown;
  if (fs::equivalent(source, options.test, unknown))
    throw std::runtime_error(
        fmt::format("--test {}: the source itself, expected other images (--test-share P takes some of it)",
                    options.test));
}

// Returns the path as listings write it: "images" for "./images/".
std::string inside_source(const std::string& root) {
  std::string path = fs::path(root).lexically_normal().generic_string();
  if (path.ends_with('/')) path.pop_back();
  return path == "." ? "" : path;
}

// If `source` is a folder with the ImageNet archives in the layout that torchvision expects,
// replaces it by the training archive, and sets the options for the test images to the other
// archives. Returns the folder then, else an empty path.
fs::path find_imagenet(std::string& source, ConvertOptions& options) {
  const fs::path folder(source);
  if (!is_file(folder / "ILSVRC2012_img_train.tar")) return {};
  const auto take = [&](std::string& option, const char* file) {
    if (option.empty() && is_file(folder / file)) option = (folder / file).string();
  };
  take(options.test, "ILSVRC2012_img_val.tar");
  take(options.test_labels, "ILSVRC2012_devkit_t12.tar.gz");
  source = (folder / "ILSVRC2012_img_train.tar").string();
  return folder;
}

// Counts the files of the folder that are not read as left out.
void count_next_to_imagenet(Conversion& conversion, const fs::path& folder) {
  const Listing listing = open_folder(folder)->list();
  const auto is_read = [&](const fs::path& file) {
    std::error_code unknown;  // the options may be empty
    return fs::equivalent(file, conversion.name, unknown) ||
           fs::equivalent(file, conversion.options.test, unknown) ||
           fs::equivalent(file, conversion.options.test_labels, unknown);
  };
  for (const std::string& path : listing.files)
    if (!is_read(folder / path)) conversion.left_out.add_file(path);
  for (const Unreadable& item : listing.unreadable) conversion.leave_out(item);
}

bool is_csv(const fs::path& source) { return extension_of(source.string()) == ".csv" && is_file(source); }

bool is_image_in_folder(const std::string& path) {
  return !is_hidden(path) && is_read_image(path) && path.find('/') != std::string::npos;
}

// Counts what lies next to the archives of a folder as left out. Throws for an archive or a folder
// that cannot be read and is not hidden, because it may hold a whole class or shard. A link to a
// folder that holds it leads to nothing else.
void account_for_others(Conversion& conversion, Listing& folder) {
  std::erase_if(folder.unreadable, [&](const Unreadable& item) {
    if (item.circle) conversion.leave_out(item);
    return item.circle;
  });
  for (const Unreadable& item : folder.unreadable)
    if (!is_hidden(item.path) && (item.folder || is_archive_path(item.path)))
      throw std::runtime_error(fmt::format("{}: {}: {}, expected archives that can be read", conversion.name,
                                           item.path, item.reason));
  conversion.account_for(folder);
  for (const std::string& path : folder.files)
    if (is_hidden(path) || !is_archive_path(path)) conversion.left_out.add_file(path);
}

// Lists the source. If it holds archives, and no images but some next to them (a preview, a logo),
// lists the content of the archives.
Listing list_source(Conversion& conversion, const std::string& source) {
  conversion.source = open_source(source);
  conversion.archives_are_folders = is_archive_list(source);
  Listing listing = conversion.source->list();
  if (any_file(listing, is_image_in_folder) || !any_file(listing, is_archive_path)) return listing;
  if (is_folder(source)) account_for_others(conversion, listing);
  conversion.source = open_archives(source);
  conversion.archives_are_folders = true;
  return conversion.source->list();
}

// Throws if a flag is given that has no meaning for a data set of this format.
void refuse_flags_of_folders(const Conversion& conversion, SourceFormat format) {
  const ConvertOptions& options = conversion.options;
  const bool images = format == SourceFormat::images, tiny = format == SourceFormat::tiny_imagenet;
  const bool labels = tiny || format == SourceFormat::webdataset;
  const char* flag = !options.root.empty() && !images          ? "--root"
                     : !options.test_folder.empty() && !images ? "--test-folder"
                     : !options.test.empty() && tiny           ? "--test"
                     : !options.test_labels.empty() && labels  ? "--test-labels"
                                                               : nullptr;
  if (flag != nullptr)
    throw std::runtime_error(fmt::format("{}: a set of format {}, which does not take {}", conversion.name,
                                         name_of(format), flag));
}

void refuse_flags_of_images(const Conversion& conversion, SourceFormat format) {
  const ConvertOptions& options = conversion.options;
  const char* flag =
      options.size != 0              ? "--size"
      : options.short_side != 0      ? "--short-side"
      : options.channels != 3        ? "--channels"
      : !options.test.empty()        ? "--test"
      : !options.test_labels.empty() ? "--test-labels"
      : options.test_share != 0      ? "--test-share"
      : !options.root.empty()        ? "--root"
      : !options.test_folder.empty() ? "--test-folder"
      : options.encoding.form == Encoding::Form::automatic || options.encoding.form == Encoding::Form::raw
          ? nullptr
          : "--encode";
  if (flag != nullptr)
    throw std::runtime_error(fmt::format("{}: a set of format {}, expected images with {}", conversion.name,
                                         name_of(format), flag));
}

Catalogue catalogue_of(Conversion& conversion, SourceFormat format, Listing listing) {
  switch (format) {
    case SourceFormat::csv:
      return csv(conversion);
    case SourceFormat::webdataset:
      conversion.account_for(listing);
      return webdataset(conversion);
    case SourceFormat::tiny_imagenet:
      conversion.account_for(listing);
      return tiny_imagenet(conversion, std::move(listing));
    default:
      return image_folders(conversion, std::move(listing));
  }
}

[[noreturn]] void refuse_unknown(const Conversion& conversion, const Listing& listing) {
  for (const Unreadable& item : listing.unreadable)
    if (may_hold_images(item) || is_archive_path(item.path))
      throw std::runtime_error(fmt::format("{}: {}: {}, expected files that can be read", conversion.name,
                                           item.path, item.reason));
  throw std::runtime_error(fmt::format(
      "{}: no known data set, expected train/CLASS/*.jpg|png with test/ or val/, CLASS/*.jpg|png, "
      "WebDataset shards, a CSV file, CIFAR binary files (data_batch_1.bin …) or IDX files "
      "(train-images-idx3-ubyte …)",
      conversion.name));
}

}  // namespace

const char* name_of(SourceFormat format) {
  static constexpr std::array kNames{"auto", "images", "tiny-imagenet", "webdataset", "csv", "cifar", "idx"};
  return kNames.at(static_cast<std::size_t>(format));
}

ConvertReport convert(const std::string& given_source, const fs::path& destination,
                      const ConvertOptions& given_options) {
  // Return large blocks to the system when they are freed. Otherwise glibc comes to keep blocks of
  // up to 32 MiB in each thread, and the limit of 512 MiB does not hold.
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  std::string source = given_source;
  ConvertOptions options = given_options;
  const fs::path imagenet = find_imagenet(source, options);
  for (const std::string& read : {source, options.test, options.test_labels})
    refuse_same_file(read, destination);
  refuse_source_as_test(source, options);
  options.root = inside_source(options.root);
  Conversion conversion{source, destination, options, nullptr, nullptr, false, {}, 0};
  if (!imagenet.empty()) count_next_to_imagenet(conversion, imagenet);
  ConvertReport report;
  report.format = options.format;
  if (options.format == SourceFormat::automatic && is_csv(source)) report.format = SourceFormat::csv;
  Listing listing;
  if (report.format != SourceFormat::csv) listing = list_source(conversion, source);
  if (report.format == SourceFormat::automatic) report.format = recognise(listing);
  if (report.format == SourceFormat::automatic) refuse_unknown(conversion, listing);
  if (report.format == SourceFormat::cifar || report.format == SourceFormat::idx) {
    refuse_flags_of_images(conversion, report.format);
    conversion.account_for(listing);
    report.encoding.form = Encoding::Form::raw;
    report.format == SourceFormat::cifar ? convert_cifar(conversion, listing, report)
                                         : convert_idx(conversion, listing, report);
  } else {
    refuse_flags_of_folders(conversion, report.format);
    if (!options.test.empty()) conversion.test = open_source(options.test);
    write_images(conversion, catalogue_of(conversion, report.format, std::move(listing)), report);
  }
  report.left_out = conversion.left_out.list();
  report.skipped = conversion.skipped;
  return report;
}

}  // namespace convoy::data
