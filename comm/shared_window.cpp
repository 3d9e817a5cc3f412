#include "comm/shared_window.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace convoy::comm {
namespace {

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }
  // Tells files apart: a process of another container may have the same number as a rank of this one.
  std::array<std::int64_t, 2> identity() const {
    struct stat status {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) return {-1, -1};
    return {static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino)};
  }
  std::byte* map(std::size_t bytes) const {
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
  }

 private:
  int descriptor_;
};

}  // namespace

std::shared_ptr<SharedWindow> SharedWindow::create(const Communicator& communicator, std::size_t bytes) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const std::size_t mapped = bytes + kHeaderBytes;
  const std::shared_ptr<SharedWindow> window(new SharedWindow(bytes, communicator.size()));
  const File mine(::memfd_create("convoy", MFD_CLOEXEC));
  const bool made = mine.descriptor() >= 0 && ::ftruncate(mine.descriptor(), static_cast<off_t>(mapped)) == 0;
  const auto [device, inode] = made ? mine.identity() : std::array<std::int64_t, 2>{-1, -1};
  const std::array<std::int64_t, 4> address{::getpid(), mine.descriptor(), device, inode};
  std::vector<std::int64_t> all(address.size() * window->parts_.size());
  communicator.all_gather(std::span<const std::int64_t>(address), std::span<std::int64_t>(all),
                          "shared window");
  std::int32_t seen = 1;
  for (std::size_t rank = 0; rank < window->parts_.size(); ++rank) {
    const std::int64_t* theirs = all.data() + rank * address.size();
    const File file(theirs[2] < 0 ? -1
                                  : ::open(fmt::format("/proc/{}/fd/{}", theirs[0], theirs[1]).c_str(),
                                           O_RDWR | O_CLOEXEC));
    if (file.identity() == std::array{theirs[2], theirs[3]}) window->parts_[rank] = file.map(mapped);
    if (window->parts_[rank] == nullptr) seen = 0;
  }
  // Also keeps every file open until all have mapped it.
  return communicator.all_reduce(seen, ReduceOp::min, "shared window") == 1 ? window : nullptr;
}

SharedWindow::~SharedWindow() {
  for (std::byte* part : parts_)
    if (part != nullptr) ::munmap(part, bytes_ + kHeaderBytes);
}

}  // namespace convoy::comm
