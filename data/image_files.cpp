#include "data/image_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "data/convert/catalogue.h"
#include "data/convert/folder_source.h"
#include "data/path_kind.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

std::int64_t bytes_of(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
}

// Returns the images of the folder and counts all other files in it as left out.
std::vector<std::string> images_of(Conversion& conversion) {
  Listing listing = conversion.source->list();
  conversion.account_for(listing);
  std::vector<std::string> images;
  for (std::string& path : listing.files) {
    if (conversion.takes(path, (fs::path(conversion.name) / path).string()))
      images.push_back(std::move(path));
  }
  return images;
}

// Returns true for a file that may be an image, and throws for an archive. For anything else calls
// Conversion::refuse(), which throws or warns.
bool is_usable(Conversion& conversion) {
  std::error_code error;
  const fs::file_status status = fs::status(conversion.name, error);
  if (fs::is_regular_file(status)) {
    if (!is_archive_path(conversion.name)) return true;
    throw std::runtime_error(
        fmt::format("{}: an archive, expected images, folders or a store (convoy data convert makes one)",
                    conversion.name));
  }
  const std::string reason = status.type() == fs::file_type::none ? error.message()
                             : !fs::exists(status)                ? "no such file or folder"
                                                                  : "neither a file nor a folder";
  conversion.refuse(fmt::format("{}: {}", conversion.name, reason), "files that cannot be read");
  return false;
}

}  // namespace

ImageFiles::ImageFiles(const std::vector<std::string>& sources, const ImageFilesOptions& options)
    : channels_(options.channels) {
  ConvertOptions rules;
  rules.skip_bad = options.skip_bad;
  rules.warn = options.warn;
  Conversion conversion{"", {}, rules, nullptr, nullptr, false, {}, 0};
  for (const std::string& source : sources) {
    conversion.name = source;
    if (is_folder(source)) {
      conversion.source = open_folder(source);
      for (const std::string& path : images_of(conversion)) {
        const auto slash = path.find('/');
        add((fs::path(source) / path).string(), slash == std::string::npos ? "" : path.substr(0, slash));
      }
    } else if (is_usable(conversion)) {
      add(source, "");
    }
  }
  left_out_ = conversion.left_out.list();
  skipped_ = conversion.skipped;
  if (paths_.empty())
    throw std::runtime_error(fmt::format("{}: holds no images, expected JPEG or PNG files", sources.front()));
}

void ImageFiles::add(std::string path, std::string folder) {
  largest_bytes_ = std::max(largest_bytes_, bytes_of(path));
  paths_.push_back(std::move(path));
  folders_.push_back(std::move(folder));
}

bool ImageFiles::label_by_folder(const std::vector<std::string>& classes) {
  std::vector<std::int32_t> labels;
  for (const std::string& folder : folders_) {
    const auto found = std::ranges::find(classes, folder);
    if (folder.empty() || found == classes.end()) return false;
    labels.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
  labels_ = std::move(labels);
  return true;
}

std::int64_t ImageFiles::stored_bytes(std::int64_t sample) const { return bytes_of(paths_[index(sample)]); }

std::span<const std::uint8_t> ImageFiles::stored(std::int64_t sample, std::span<std::uint8_t> scratch) const {
  const std::string& path = paths_[index(sample)];
  Bytes content;
  try {
    content = read_file(path);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
  }
  if (content.size() > scratch.size())
    throw std::runtime_error(
        fmt::format("{}: {} bytes, expected at most the {} of the largest image when the files were listed",
                    path, content.size(), scratch.size()));
  std::ranges::copy(content, scratch.begin());
  return scratch.first(content.size());
}

}  // namespace convoy::data
