#include "data/store/store_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "data/class_names.h"
#include "data/store/dataset_sources.h"

namespace convoy::data {
namespace {

using hdf5::Handle;
using hdf5::own;

// Larger extents are refused as damaged or hostile. Sizes computed from extents up to this limit do
// not overflow.
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 48;
// The largest compression ratio of deflate, which is HDF5's usual filter.
constexpr std::int64_t kMostCompression = 1032;

std::string describe_type(hid_t type) {
  const std::size_t bits = H5Tget_size(type) * 8;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{}int{}", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_FLOAT:
      return fmt::format("float{}", bits);
    case H5T_STRING:
      return "strings";
    case H5T_ENUM:
      return "an enumeration";
    case H5T_COMPOUND:
      return "a compound type";
    case H5T_VLEN:
      return "arrays of different lengths";
    default:
      return "another type";
  }
}

// Throws if the file is too small for the dataset's values. Without this check, a damaged header
// could make the reader allocate any amount of memory.
void check_fits_file(const Hdf5Dataset& dataset, std::size_t element_bytes) {
  const hid_t id = dataset.handle.get();
  const Handle creation = own(H5Dget_create_plist(id), H5Pclose, dataset.name);
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0) return;
  const Handle file = own(H5Iget_file_id(id), H5Fclose, dataset.name);
  hsize_t bytes = 0;
  hdf5::check(H5Fget_filesize(file.get(), &bytes), dataset.name);
  if (dataset.extents[0] / kMostCompression * static_cast<std::int64_t>(element_bytes) >
      static_cast<std::int64_t>(bytes)) {
    throw std::runtime_error(fmt::format("{}: {} values in a file of {} bytes, expected them to fit",
                                         dataset.name, dataset.extents[0], bytes));
  }
}

struct Attribute {
  Handle handle, type;
  std::string name;
  std::int64_t count = 0;
};

Attribute open_attribute(hid_t file, const std::string& file_name, const char* attribute, bool numbers,
                         const std::string& expected) {
  Attribute result;
  result.name = fmt::format("{}: attribute {}", file_name, attribute);
  if (H5Aexists(file, attribute) <= 0) {
    throw std::runtime_error(fmt::format("{}: missing, expected {}", result.name, expected));
  }
  result.handle = own(H5Aopen(file, attribute, H5P_DEFAULT), H5Aclose, result.name);
  result.type = own(H5Aget_type(result.handle.get()), H5Tclose, result.name);
  const Handle space = own(H5Aget_space(result.handle.get()), H5Sclose, result.name);
  result.count = H5Sget_simple_extent_npoints(space.get());
  const int rank = H5Sget_simple_extent_ndims(space.get());
  const H5T_class_t kind = H5Tget_class(result.type.get());
  const bool right_kind = numbers ? kind == H5T_FLOAT || kind == H5T_INTEGER : kind == H5T_STRING;
  if (rank != 1 || !right_kind || result.count <= 0 || result.count > std::int64_t{1} << 24) {
    throw std::runtime_error(fmt::format("{}: {} of rank {} with {} elements, expected {}", result.name,
                                         describe_type(result.type.get()), rank, result.count, expected));
  }
  return result;
}

std::vector<std::string> read_variable_strings(const Attribute& attribute) {
  std::vector<char*> pointers(static_cast<std::size_t>(attribute.count));
  hdf5::check(H5Aread(attribute.handle.get(), attribute.type.get(), pointers.data()), attribute.name);
  std::vector<std::string> strings;
  for (const char* text : pointers) strings.emplace_back(text == nullptr ? "" : text);
  const Handle space = own(H5Aget_space(attribute.handle.get()), H5Sclose, attribute.name);
  H5Dvlen_reclaim(attribute.type.get(), space.get(), H5P_DEFAULT, pointers.data());
  return strings;
}

std::vector<std::string> read_fixed_strings(const Attribute& attribute) {
  const std::size_t width = H5Tget_size(attribute.type.get());
  if (width > std::size_t{1} << 16) {
    throw std::runtime_error(
        fmt::format("{}: names of {} bytes, expected at most {}", attribute.name, width, 1 << 16));
  }
  // Let HDF5 convert strings that are padded with spaces to strings padded with zeros.
  const Handle padded = own(H5Tcopy(attribute.type.get()), H5Tclose, attribute.name);
  hdf5::check(H5Tset_strpad(padded.get(), H5T_STR_NULLPAD), attribute.name);
  std::vector<char> text(width * static_cast<std::size_t>(attribute.count));
  hdf5::check(H5Aread(attribute.handle.get(), padded.get(), text.data()), attribute.name);
  std::vector<std::string> strings;
  for (std::size_t at = 0; at < text.size(); at += width) {
    strings.emplace_back(text.data() + at, strnlen(text.data() + at, width));
  }
  return strings;
}

// Returns the first link in `path` whose target does not exist, or "" if there is none.
std::string dangling_link(hid_t file, const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string way = path.substr(0, end);
    if (H5Lexists(file, way.c_str(), H5P_DEFAULT) <= 0) return "";
    if (H5Oexists_by_name(file, way.c_str(), H5P_DEFAULT) <= 0) return way;
    if (end == std::string::npos) return "";
  }
}

// Throws if the dataset needs a filter that this HDF5 library lacks. Without this check, the first
// read would fail with a message that does not name the filter.
void check_filters(hid_t dataset, const std::string& name) {
  const Handle creation = own(H5Dget_create_plist(dataset), H5Pclose, name);
  for (int i = 0; i < H5Pget_nfilters(creation.get()); ++i) {
    std::array<char, 64> filter{};
    std::size_t values = 0;
    unsigned flags = 0, config = 0;
    const H5Z_filter_t id = H5Pget_filter2(creation.get(), static_cast<unsigned>(i), &flags, &values, nullptr,
                                           filter.size(), filter.data(), &config);
    if (id >= 0 && H5Zfilter_avail(id) > 0) continue;
    throw std::runtime_error(fmt::format(
        "{}: written through filter {}{}, which this HDF5 does not have (h5repack can remove it)", name,
        static_cast<int>(id), filter[0] != '\0' ? fmt::format(" ({})", filter.data()) : ""));
  }
}

}  // namespace

bool exists(hid_t file, const std::string& path) {
  // Look up the links of the path one by one, because H5Lexists() fails if a link before the last
  // one is missing.
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (H5Lexists(file, path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return H5Oexists_by_name(file, path.c_str(), H5P_DEFAULT) > 0;
  }
}

Hdf5Dataset open_dataset(hid_t file, const std::string& file_name, const std::string& path,
                         const ExpectedDataset& expected) {
  Hdf5Dataset dataset;
  dataset.name = fmt::format("{}: {}", file_name, path);
  const std::string wanted = fmt::format("expected a dataset of {} of rank {} {}",
                                         expected.bytes ? "uint8" : "integers", expected.rank, expected.axes);
  if (!exists(file, path)) {
    const std::string link = dangling_link(file, path);
    throw std::runtime_error(fmt::format("{}: {}, {}", dataset.name,
                                         link.empty() ? "missing" : link + " is a link that leads nowhere",
                                         wanted));
  }
  dataset.handle = Handle(H5Dopen2(file, path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.handle) throw std::runtime_error(fmt::format("{}: no dataset, {}", dataset.name, wanted));
  const Handle space = own(H5Dget_space(dataset.handle.get()), H5Sclose, dataset.name);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  const Handle type = own(H5Dget_type(dataset.handle.get()), H5Tclose, dataset.name);
  const std::string found = describe_type(type.get());
  const H5T_class_t kind = H5Tget_class(type.get());
  // h5py stores Python's bool as an enumeration of integers.
  const bool right_type = expected.bytes ? found == "uint8" : kind == H5T_INTEGER || kind == H5T_ENUM;
  if (rank != static_cast<int>(expected.rank) || !right_type) {
    throw std::runtime_error(fmt::format("{}: {} of rank {}, {}", dataset.name, found, rank, wanted));
  }
  std::vector<hsize_t> extents(expected.rank);
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  for (const hsize_t extent : extents)
    dataset.extents.push_back(static_cast<std::int64_t>(std::min<hsize_t>(extent, kLargestExtent)));
  require_sources(dataset.handle.get(), dataset.name);
  check_filters(dataset.handle.get(), dataset.name);
  const Handle creation = own(H5Dget_create_plist(dataset.handle.get()), H5Pclose, dataset.name);
  if (H5Pget_layout(creation.get()) == H5D_CHUNKED &&
      H5Pget_chunk(creation.get(), static_cast<int>(expected.rank), extents.data()) > 0) {
    dataset.chunk_rows = static_cast<std::int64_t>(extents[0]);
  }
  return dataset;
}

std::vector<std::int64_t> read_integers(const Hdf5Dataset& dataset) {
  const Handle type = own(H5Dget_type(dataset.handle.get()), H5Tclose, dataset.name);
  check_fits_file(dataset, H5Tget_size(type.get()));
  std::vector<std::int64_t> values(static_cast<std::size_t>(dataset.extents[0]));
  hdf5::check(H5Dread(dataset.handle.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
              dataset.name + ": cannot read");
  return values;
}

std::vector<std::string> read_classes(hid_t file, const std::string& file_name) {
  const Attribute attribute = open_attribute(file, file_name, "classes", false, "a list of class names");
  std::vector<std::string> classes = H5Tis_variable_str(attribute.type.get()) > 0
                                         ? read_variable_strings(attribute)
                                         : read_fixed_strings(attribute);
  require_class_names(classes, attribute.name);
  return classes;
}

std::vector<float> read_statistics(hid_t file, const std::string& file_name, const char* name,
                                   std::int64_t channels) {
  const bool deviation = std::strcmp(name, "std") == 0;
  const std::string expected =
      fmt::format("{}{} numbers on the scale 0 to 1, one a channel",
                  channels == 0 ? "1 or 3" : fmt::format("{}", channels), deviation ? " positive" : "");
  const Attribute attribute = open_attribute(file, file_name, name, true, expected);
  std::vector<float> values(static_cast<std::size_t>(attribute.count));
  hdf5::check(H5Aread(attribute.handle.get(), H5T_NATIVE_FLOAT, values.data()), attribute.name);
  const bool count =
      channels == 0 ? attribute.count == 1 || attribute.count == 3 : attribute.count == channels;
  const bool good = std::all_of(values.begin(), values.end(),
                                [&](float v) { return v >= 0 && v <= 1 && (!deviation || v > 0); });
  if (!count || !good) {
    const float most = *std::max_element(values.begin(), values.end());
    throw std::runtime_error(fmt::format("{}: [{}]{}, expected {}", attribute.name, fmt::join(values, ", "),
                                         most > 1 && most <= 255 ? " on the scale 0 to 255" : "", expected));
  }
  return values;
}

std::int64_t attribute_count(hid_t file, const char* name) {
  if (H5Aexists(file, name) <= 0) return 0;
  const Handle attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
  if (!attribute) return 0;
  const Handle space(H5Aget_space(attribute.get()), H5Sclose);
  return space ? H5Sget_simple_extent_npoints(space.get()) : 0;
}

}  // namespace convoy::data
