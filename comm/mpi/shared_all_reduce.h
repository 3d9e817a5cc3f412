// All-reduce of data in memory that the ranks of one host share (SharedWindow). Each rank adds all
// ranks' values of its share of the buffer, in rank order, and writes the sum to every rank's
// buffer. Ranks synchronise by counters in the shared memory and send no message. With two ranks
// and a buffer of 45 MB, each rank reads 45 MB and writes 45 MB, and no transport copies the data
// again.
#pragma once

#include <memory>
#include <vector>

#include "comm/collectives.h"
#include "comm/communicator.h"
#include "comm/shared_window.h"

namespace convoy::comm {

class SharedAllReduce : public PreparedOperation {
 public:
  // The data begin `offset` bytes after the start of every rank's part of the window. `operation`
  // is a number below SharedWindow::kOperations that no other operation of the window uses. The
  // communicator must outlive this object.
  SharedAllReduce(const Communicator& communicator, std::shared_ptr<SharedWindow> window,
                  std::size_t operation, std::size_t offset, std::int64_t count, DType type,
                  std::string_view label);

  void start(Stream) override;
  bool progress() override;
  void wait(Stream) override;

 private:
  bool all_reached(std::atomic<std::uint64_t> SharedWindow::Progress::*counter) const;

  const Communicator& communicator_;
  std::shared_ptr<SharedWindow> window_;
  std::size_t operation_;
  DType type_;
  OperationName name_;
  std::int64_t share_ = 0;            // number of elements in a rank's share
  std::vector<const void*> addends_;  // all ranks' values of this rank's share, in rank order
  std::vector<void*> sums_;           // the addresses of this rank's share in the parts of all ranks
  std::uint64_t step_ = 0;
  std::uint64_t sequence_ = 0;
  bool active_ = false, added_ = false;
};

}  // namespace convoy::comm
