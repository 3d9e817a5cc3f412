#include "data/store/dataset_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "data/path_kind.h"
#include "data/store/hdf5_driver.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using hdf5::Handle;
using hdf5::own;

std::string text_of(auto call) {
  std::string text(static_cast<std::size_t>(std::max<ssize_t>(call(nullptr, 0), 0)), '\0');
  call(text.data(), text.size() + 1);
  return text;
}

fs::path folder_of(hid_t dataset) {
  return fs::path(text_of([&](char* to, std::size_t size) { return H5Fget_name(dataset, to, size); }))
      .parent_path();
}

// Returns the folder that HDF5 puts before a relative file name. ${ORIGIN} in `prefix` means the
// folder of the HDF5 file.
fs::path with_origin(std::string_view prefix, const fs::path& folder) {
  constexpr std::string_view kOrigin = "${ORIGIN}";
  if (!prefix.starts_with(kOrigin)) return prefix;
  return folder.string() + std::string(prefix.substr(kOrigin.size()));
}

std::vector<fs::path> prefixes(const char* variable, const fs::path& folder) {
  const char* value = std::getenv(variable);
  std::vector<fs::path> result;
  for (std::string_view rest = value == nullptr ? "" : value; !rest.empty();) {
    const auto end = std::min(rest.find(':'), rest.size());
    result.push_back(with_origin(rest.substr(0, end), folder));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return result;
}

void require_raw_files(hid_t dataset, hid_t creation, const std::string& name) {
  const auto folders = prefixes("HDF5_EXTFILE_PREFIX", folder_of(dataset));
  const Handle type = own(H5Dget_type(dataset), H5Tclose, name);
  const Handle space = own(H5Dget_space(dataset), H5Sclose, name);
  auto rest = static_cast<hsize_t>(H5Sget_simple_extent_npoints(space.get())) * H5Tget_size(type.get());
  const int files = H5Pget_external_count(creation);
  for (int i = 0; i < files && rest > 0; ++i) {
    std::array<char, 4096> text{};
    off_t offset = 0;
    hsize_t size = 0;
    hdf5::check(
        H5Pget_external(creation, static_cast<unsigned>(i), text.size() - 1, text.data(), &offset, &size),
        name);
    const fs::path file = folders.empty() ? text.data() : folders[0] / text.data();
    const hsize_t needed = static_cast<hsize_t>(offset) + std::min(rest, size);
    std::error_code error;
    const auto found = fs::file_size(file, error);
    if (error)
      throw std::runtime_error(
          fmt::format("{}: its raw data file {}: {}", name, file.string(), error.message()));
    if (found < needed)
      throw std::runtime_error(fmt::format("{}: its raw data file {} has {} bytes, expected {}", name,
                                           file.string(), found, needed));
    rest -= std::min(rest, size);
  }
}

bool holds(const fs::path& file, const std::string& dataset) {
  if (!is_file(file)) return false;
  try {
    const Handle opened = hdf5::open_to_read(file.string());
    return static_cast<bool>(Handle(H5Dopen2(opened.get(), dataset.c_str(), H5P_DEFAULT), H5Dclose));
  } catch (const std::runtime_error&) {
    return false;
  }
}

// Returns the paths where HDF5 looks for a source file of a virtual dataset, in HDF5's order.
std::vector<fs::path> places_of(const fs::path& source, const fs::path& folder) {
  std::vector<fs::path> places;
  if (source.is_absolute()) places.push_back(source);
  for (const fs::path& prefix : prefixes("HDF5_VDS_PREFIX", folder)) places.push_back(prefix / source);
  for (const fs::path& place : {folder / source, source, folder / source.filename()}) places.push_back(place);
  return places;
}

void require_virtual_sources(hid_t dataset, hid_t creation, const std::string& name) {
  const fs::path folder = folder_of(dataset);
  const Handle own_file = own(H5Iget_file_id(dataset), H5Fclose, name);
  std::size_t count = 0;
  hdf5::check(H5Pget_virtual_count(creation, &count), name);
  std::string last;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string file =
        text_of([&](char* to, std::size_t size) { return H5Pget_virtual_filename(creation, i, to, size); });
    const std::string source =
        text_of([&](char* to, std::size_t size) { return H5Pget_virtual_dsetname(creation, i, to, size); });
    // A name with %b is a pattern that may match any number of files, even none.
    const bool pattern = (file + source).find('%') != std::string::npos;
    if (pattern || file + ":" + source == last) continue;
    last = file + ":" + source;
    const auto places = places_of(file, folder);
    const bool found = file == "." ? H5Oexists_by_name(own_file.get(), source.c_str(), H5P_DEFAULT) > 0
                                   : std::ranges::any_of(
                                         places, [&](const fs::path& place) { return holds(place, source); });
    if (!found)
      throw std::runtime_error(
          fmt::format("{}: a virtual dataset whose source {} of {} cannot be read", name, source, file));
  }
}

}  // namespace

void require_sources(hid_t dataset, const std::string& name) {
  const Handle creation = own(H5Dget_create_plist(dataset), H5Pclose, name);
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL) {
    require_virtual_sources(dataset, creation.get(), name);
  } else if (H5Pget_external_count(creation.get()) > 0) {
    require_raw_files(dataset, creation.get(), name);
  }
}

}  // namespace convoy::data
