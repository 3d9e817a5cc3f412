#include "comm/shared_window.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace convoy::comm {
namespace {

// The fields that identify a rank's file. The process number alone is not enough, because processes
// of different containers may have the same number.
enum Field : std::uint8_t { process, descriptor, device, inode, window_bytes, kFields };
using Address = std::array<std::int64_t, kFields>;

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Makes this rank's zeroed memory in `file`. Returns what other ranks need to open the file.
// window_bytes is 0 if there is no memory.
Address make_part(const File& file, std::size_t window, std::size_t mapped) {
  struct stat status {};
  const bool made = window > 0 && file.descriptor() >= 0 &&
                    ::ftruncate(file.descriptor(), static_cast<off_t>(mapped)) == 0 &&
                    ::fstat(file.descriptor(), &status) == 0;
  return {::getpid(), file.descriptor(), static_cast<std::int64_t>(status.st_dev),
          static_cast<std::int64_t>(status.st_ino), made ? static_cast<std::int64_t>(window) : 0};
}

std::byte* map_part(const Address& address, std::size_t mapped) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address[process], address[descriptor]);
  struct stat status {};
  // Check the file before opening it. Another file may have the same name in this container, and
  // opening a device could have effects.
  if (::stat(path.c_str(), &status) != 0 || static_cast<std::int64_t>(status.st_dev) != address[device] ||
      static_cast<std::int64_t>(status.st_ino) != address[inode])
    return nullptr;
  const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (file.descriptor() < 0) return nullptr;
  void* part = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  return part == MAP_FAILED ? nullptr : static_cast<std::byte*>(part);
}

}  // namespace

std::shared_ptr<SharedWindow> SharedWindow::create(const Communicator& communicator, std::size_t bytes) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const std::size_t mapped = bytes + kHeaderBytes;
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const std::shared_ptr<SharedWindow> window(new SharedWindow(bytes, communicator.size()));
  const File file(::memfd_create("convoy", MFD_CLOEXEC));
  const Address mine = make_part(file, bytes, mapped);
  std::vector<std::int64_t> all(mine.size() * ranks);
  communicator.all_gather(std::span<const std::int64_t>(mine), std::span<std::int64_t>(all), "shared window");
  std::int32_t complete = 1;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Address theirs;
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(rank * kFields), std::size_t{kFields},
                theirs.begin());
    if (mine[window_bytes] > 0 && theirs[window_bytes] == mine[window_bytes])
      window->parts_[rank] = map_part(theirs, mapped);
    if (window->parts_[rank] == nullptr) complete = 0;
  }
  // A rank must keep its file open until all others have mapped it. This all-reduce also makes each
  // rank wait until then.
  return communicator.all_reduce(complete, ReduceOp::min, "shared window") == 1 ? window : nullptr;
}

SharedWindow::~SharedWindow() {
  for (std::byte* part : parts_)
    if (part != nullptr) ::munmap(part, bytes_ + kHeaderBytes);
}

}  // namespace convoy::comm
