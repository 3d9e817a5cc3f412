// Memory that all ranks of one host can address. It has one part for each rank. Each part is an
// anonymous file (memfd_create), because MPI_Win_allocate_shared needs room in /dev/shm, which is
// small in containers.
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
  // How far a rank is in one operation. When the rank reaches the point that the comment of a
  // counter names, it sets the counter to the number of the current step.
  struct alignas(64) Progress {
    std::atomic<std::uint64_t> ready;  // the rank's own values are complete
    std::atomic<std::uint64_t> done;   // the rank has written the sum of its share to all ranks
  };
  static constexpr std::size_t kOperations = 1024;

  // Makes `bytes` of zeroed memory for each rank. Collective. Returns null on all ranks if one rank
  // cannot map the memory of the others, or if sizes differ. A rank that has already failed passes
  // size 0.
  static std::shared_ptr<SharedWindow> create(const Communicator& communicator, std::size_t bytes);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  std::byte* data(int rank) const { return parts_[rank] + kHeaderBytes; }
  std::size_t bytes() const { return bytes_; }
  Progress& progress(int rank, std::size_t operation) const {
    return reinterpret_cast<Progress*>(parts_[rank])[operation];
  }

 private:
  static constexpr std::size_t kHeaderBytes = kOperations * sizeof(Progress);

  SharedWindow(std::size_t bytes, int ranks) : bytes_(bytes), parts_(static_cast<std::size_t>(ranks)) {}

  std::size_t bytes_;
  std::vector<std::byte*> parts_;  // addresses of all ranks' parts in this process
};

}  // namespace convoy::comm
