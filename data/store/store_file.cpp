#include "data/store/store_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "data/class_names.h"

namespace convoy::data {
namespace {

using hdf5::check;
using hdf5::Handle;
using hdf5::own;

void write_attribute(hid_t file, const char* name, hid_t type, hsize_t count, const void* values,
                     const std::string& path) {
  const std::string what = fmt::format("{}: attribute {}: cannot write", path, name);
  const Handle space = own(H5Screate_simple(1, &count, nullptr), H5Sclose, what);
  const Handle attribute =
      own(H5Acreate2(file, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, what);
  check(H5Awrite(attribute.get(), type, values), what);
}

// Writes strings of a fixed length. HDF5 keeps strings of variable length in a heap without
// checksums, and crashes when it reads a damaged heap.
void write_strings(hid_t file, const char* name, const std::vector<std::string>& values,
                   const std::string& path) {
  std::size_t width = 1;
  for (const auto& value : values) width = std::max(width, value.size());
  std::string text;
  for (const auto& value : values) {
    text += value;
    text.resize(text.size() + width - value.size(), '\0');
  }
  const Handle type = own(H5Tcopy(H5T_C_S1), H5Tclose, path);
  check(H5Tset_size(type.get(), width), path);
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), path);
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), path);
  write_attribute(file, name, type.get(), values.size(), text.data(), path);
}

// Creates the file and tries to lock it. Returns false if the file system has no locks.
bool has_locks(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) return true;  // HDF5 says why it cannot create the file
  const bool locks = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno == EWOULDBLOCK;
  ::close(descriptor);
  return locks;
}

// Allows HDF5 to write on a file system without locks. On one with locks, HDF5 still excludes a
// second writer.
void write_without_locks([[maybe_unused]] hid_t access, [[maybe_unused]] const std::string& what) {
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  check(H5Pset_file_locking(access, false, true), what);
#endif
}

}  // namespace

Handle untimed(hid_t kind, const std::string& what) {
  Handle list = own(H5Pcreate(kind), H5Pclose, what);
  check(H5Pset_obj_track_times(list.get(), false), what);
  return list;
}

StoreFile::StoreFile(const std::filesystem::path& destination, std::vector<std::string> classes)
    : place_(destination), name_(destination.string()), classes_(std::move(classes)) {
  require_class_names(classes_, name_);
  const bool locks = has_locks(place_.path());
  const std::string what = name_ + ": cannot create";
  const Handle creation = untimed(H5P_FILE_CREATE, what);
  const Handle access = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, what);
  // In the format of HDF5 1.10, all metadata of the file have checksums. So HDF5 reports an error
  // for a damaged file instead of crashing.
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_LATEST), what);
  if (!locks) write_without_locks(access.get(), what);
  file_ = own(H5Fcreate(place_.path().c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose, what);
  const Handle group_creation = untimed(H5P_GROUP_CREATE, what);
  for (const Split split : {Split::train, Split::test}) {
    own(H5Gcreate2(file_.get(), name_of(split), H5P_DEFAULT, group_creation.get(), H5P_DEFAULT), H5Gclose,
        what);
  }
}

void StoreFile::write_vector(Split split, const char* element, hid_t stored_type, hid_t type,
                             std::size_t count, const void* values) {
  const std::string path = fmt::format("/{}/{}", name_of(split), element);
  const std::string what = fmt::format("{}: {}: cannot write", name_, path);
  const hsize_t extent = count;
  const Handle space = own(H5Screate_simple(1, &extent, nullptr), H5Sclose, what);
  const Handle creation = untimed(H5P_DATASET_CREATE, what);
  const Handle dataset = own(H5Dcreate2(file_.get(), path.c_str(), stored_type, space.get(), H5P_DEFAULT,
                                        creation.get(), H5P_DEFAULT),
                             H5Dclose, what);
  check(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), what);
}

void StoreFile::require_label(std::int32_t label) const {
  if (label >= 0 && label < static_cast<std::int64_t>(classes_.size())) return;
  throw std::invalid_argument(
      fmt::format("{}: label {}, expected 0 to {}", name_, label, classes_.size() - 1));
}

void StoreFile::finish(const ChannelStatistics& statistics) {
  const auto mean = statistics.mean(), deviation = statistics.deviation();
  write_attribute(file_.get(), "mean", H5T_NATIVE_FLOAT, mean.size(), mean.data(), name_);
  write_attribute(file_.get(), "std", H5T_NATIVE_FLOAT, deviation.size(), deviation.data(), name_);
  write_strings(file_.get(), "classes", classes_, name_);
  // Flush here: a full disk is detected only when cached data are written, and a destructor could
  // not report it.
  check(H5Fflush(file_.get(), H5F_SCOPE_LOCAL), name_ + ": cannot write");
  if (!file_.reset()) throw std::runtime_error(name_ + ": cannot close: " + hdf5::last_error());
  place_.commit();
}

}  // namespace convoy::data
