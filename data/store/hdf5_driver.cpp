#include "data/store/hdf5_driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "data/path_kind.h"

namespace convoy::data::hdf5 {
namespace {

struct File {
  H5FD_t base{};  // the fields that HDF5 uses; must be the first member
  int descriptor = -1;
  haddr_t end_of_allocated = 0, end_of_file = 0;
  dev_t device = 0;
  ino_t number = 0;
};

// While place_of() runs, the driver records here where HDF5 wants to read, and reads nothing. The
// pointer needs no lock, because a LibraryLock gives one thread exclusive access to HDF5.
struct Probe {
  std::int64_t bytes = 0;
  int pieces = 0;
  Place place{-1, 0};
};
Probe* probe = nullptr;

File* file_of(H5FD_t* file) { return reinterpret_cast<File*>(file); }
const File* file_of(const H5FD_t* file) { return reinterpret_cast<const File*>(file); }

herr_t fail(hid_t major, hid_t minor, const char* reason) {
  H5Epush2(H5E_DEFAULT, __FILE__, "driver", __LINE__, H5E_ERR_CLS, major, minor, "%s", reason);
  return -1;
}

H5FD_t* open(const char* name, unsigned flags, hid_t, haddr_t) {
  if ((flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) != 0) return nullptr;
  const int descriptor = ::open(name, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    fail(H5E_FILE, H5E_CANTOPENFILE, std::strerror(errno));
    if (descriptor >= 0) ::close(descriptor);
    return nullptr;
  }
  auto file = std::make_unique<File>();
  file->descriptor = descriptor;
  file->end_of_file = static_cast<haddr_t>(status.st_size);
  file->device = status.st_dev;
  file->number = status.st_ino;
  return &file.release()->base;
}

herr_t close(H5FD_t* base) {
  const std::unique_ptr<File> file(file_of(base));
  ::close(file->descriptor);
  return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
  const File &left = *file_of(a), &right = *file_of(b);
  if (left.device != right.device) return left.device < right.device ? -1 : 1;
  return left.number == right.number ? 0 : left.number < right.number ? -1 : 1;
}

// The flags omit H5FD_FEAT_DATA_SIEVE. With it, HDF5 would read more bytes of contiguous data than
// the caller requests.
herr_t query(const H5FD_t*, unsigned long* flags) {
  if (flags != nullptr) *flags = H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t end_of_allocated(const H5FD_t* base, H5FD_mem_t) { return file_of(base)->end_of_allocated; }

herr_t set_end_of_allocated(H5FD_t* base, H5FD_mem_t, haddr_t end) {
  file_of(base)->end_of_allocated = end;
  return 0;
}

haddr_t end_of_file(const H5FD_t* base, H5FD_mem_t) { return file_of(base)->end_of_file; }

herr_t read(H5FD_t* base, H5FD_mem_t kind, hid_t, haddr_t offset, std::size_t bytes, void* to) {
  const File& file = *file_of(base);
  if (probe != nullptr && kind == H5FD_MEM_DRAW) {
    if (++probe->pieces == 1 && static_cast<std::int64_t>(bytes) == probe->bytes)
      probe->place = {file.descriptor, static_cast<std::int64_t>(offset)};
    return 0;
  }
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(file.descriptor, static_cast<char*>(to) + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(H5E_IO, H5E_READERROR, std::strerror(errno));
    if (got == 0) return fail(H5E_IO, H5E_READERROR, "the file ends too early");
    done += static_cast<std::size_t>(got);
  }
  return 0;
}

herr_t write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) {
  return fail(H5E_IO, H5E_WRITEERROR, "the file is open for reading alone");
}

herr_t lock(H5FD_t* base, hbool_t) {
  if (::flock(file_of(base)->descriptor, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return 0;
  return fail(H5E_FILE, H5E_CANTOPENFILE, "another process has locked it, to write it");
}

herr_t unlock(H5FD_t* base) {
  ::flock(file_of(base)->descriptor, LOCK_UN);
  return 0;
}

// Assigns the fields by name, because their order differs between HDF5 versions.
H5FD_class_t driver_class() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  // HDF5 requires a number for each driver and reserves a range for experiments. This one is in it.
  driver.value = static_cast<H5FD_class_value_t>(0x636F);
#endif
  driver.name = "convoy_read";
  driver.maxaddr = (haddr_t{1} << 63) - 1;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open;
  driver.close = close;
  driver.cmp = compare;
  driver.query = query;
  driver.get_eoa = end_of_allocated;
  driver.set_eoa = set_end_of_allocated;
  driver.get_eof = end_of_file;
  driver.read = read;
  driver.write = write;
  driver.lock = lock;
  driver.unlock = unlock;
  const H5FD_mem_t pools[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(pools), std::end(pools), driver.fl_map);
  return driver;
}

Handle access_by_driver(const std::string& what) {
  static const H5FD_class_t driver = driver_class();
  static const hid_t registered = H5FDregister(&driver);
  Handle access = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, what);
  check(H5Pset_driver(access.get(), registered, nullptr), what);
  return access;
}

}  // namespace

Handle open_to_read(const std::string& file) {
  LibraryLock lock;
  if (is_folder(file)) {
    throw std::runtime_error(fmt::format("{}: a folder, expected an HDF5 file", file));
  }
  if (::access(file.c_str(), R_OK) != 0) {
    throw std::runtime_error(fmt::format("{}: {}", file, std::strerror(errno)));
  }
  const Handle access = access_by_driver(file);
  Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (opened) return opened;
  const std::string reason = last_error();
  if (H5Fis_hdf5(file.c_str()) == 0) {
    throw std::runtime_error(fmt::format("{}: not an HDF5 file (make one with `convoy data convert`)", file));
  }
  throw std::runtime_error(fmt::format("{}: cannot open the HDF5 file: {}", file, reason));
}

std::optional<Place> place_of(std::int64_t bytes, const std::function<herr_t()>& read) {
  Probe waiting{.bytes = bytes};
  probe = &waiting;
  const herr_t status = read();
  probe = nullptr;
  if (status < 0 || waiting.pieces != 1 || waiting.place.descriptor < 0) return std::nullopt;
  return waiting.place;
}

}  // namespace convoy::data::hdf5
