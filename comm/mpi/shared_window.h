// Memory that every member of a communicator can address, one part a rank, on one host. Anonymous files
// (memfd_create) rather than MPI_Win_allocate_shared: they need no room in /dev/shm, of which containers have
// little, and where ranks cannot see each other (hosts or containers of their own) all of them learn it here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace convoy::comm {

class SharedWindow {
 public:
  // What the ranks tell each other of one operation: the number of the last step that they came to.
  struct alignas(64) Progress {
    std::atomic<std::uint64_t> ready;  // this rank's values are there
    std::atomic<std::uint64_t> done;   // this rank has read and written all that it had to
  };
  static constexpr std::size_t kOperations = 1024;

  // Collective; `bytes` of zeroed memory a rank. Null on every rank if one of them cannot map the others' memory, or asks
  // for another size, as one that has failed does with 0.
  static std::shared_ptr<SharedWindow> create(const Communicator& communicator, std::size_t bytes);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  std::byte* data(int rank) const { return parts_[static_cast<std::size_t>(rank)] + kHeaderBytes; }
  std::size_t bytes() const { return bytes_; }
  Progress& progress(int rank, std::size_t operation) const {
    return reinterpret_cast<Progress*>(parts_[static_cast<std::size_t>(rank)])[operation];
  }

 private:
  static constexpr std::size_t kHeaderBytes = kOperations * sizeof(Progress);

  SharedWindow(std::size_t bytes, int ranks) : bytes_(bytes), parts_(static_cast<std::size_t>(ranks)) {}

  std::size_t bytes_;
  std::vector<std::byte*> parts_;  // as this process sees them
};

}  // namespace convoy::comm
