#include "data/convert/convert.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

namespace convoy::data {
namespace {

SourceFormat recognise(const FileSource& files, const std::string& name) {
  SourceFormat format = SourceFormat::automatic;
  files.visit([&](const std::string& path, const auto&) {
    if (is_image_path(path)) format = SourceFormat::images;
    if (is_cifar_path(path)) format = SourceFormat::cifar;
    if (is_idx_path(path)) format = SourceFormat::idx;
    return format == SourceFormat::automatic;
  });
  if (format == SourceFormat::automatic) {
    throw std::runtime_error(
        fmt::format("{}: no known data set, expected train/CLASS/*.jpg|png with test/ or val/, CIFAR binary "
                    "files (data_batch_1.bin …) or IDX files (train-images-idx3-ubyte …)",
                    name));
  }
  return format;
}

// The result is renamed into place: over the archive that it was read from, it would destroy it.
void refuse_same_file(const std::filesystem::path& source, const std::filesystem::path& destination) {
  std::error_code unknown;  // no such destination yet: the usual case
  if (std::filesystem::equivalent(source, destination, unknown))
    throw std::runtime_error(
        fmt::format("{}: both the source and the file to write, expected two", destination.string()));
}

}  // namespace

const char* name_of(SourceFormat format) {
  switch (format) {
    case SourceFormat::images:
      return "images";
    case SourceFormat::cifar:
      return "cifar";
    case SourceFormat::idx:
      return "idx";
    default:
      return "auto";
  }
}

ConvertReport convert(const std::filesystem::path& source, const std::filesystem::path& destination,
                      const ConvertOptions& options) {
  const auto files = open_source(source);
  refuse_same_file(source, destination);
  const Conversion conversion{*files, source.string(), destination, options};
  const SourceFormat format =
      options.format == SourceFormat::automatic ? recognise(*files, conversion.name) : options.format;
  if (format != SourceFormat::images && (options.size != 0 || options.channels != 3))
    throw std::runtime_error(fmt::format("{}: a set of format {}, expected images with --{}", conversion.name,
                                         name_of(format), options.size != 0 ? "size" : "channels"));
  ConvertReport report = format == SourceFormat::cifar ? convert_cifar(conversion)
                         : format == SourceFormat::idx ? convert_idx(conversion)
                                                       : convert_images(conversion);
  report.format = format;
  return report;
}

}  // namespace convoy::data
