#include "comm/mpi/shared_all_reduce.h"

#include <fmt/format.h>
#include <sched.h>

#include <stdexcept>

#include "comm/mpi/sum_in_rank_order.h"
#include "comm/shares.h"

namespace convoy::comm {

SharedAllReduce::SharedAllReduce(const Communicator& communicator, std::shared_ptr<SharedWindow> window,
                                 std::size_t operation, std::size_t offset, std::int64_t count, DType type,
                                 std::string_view label)
    : communicator_(communicator),
      window_(std::move(window)),
      operation_(operation),
      type_(type),
      name_(name_of(CollectiveKind::all_reduce), label) {
  require_summable(type, name_.view());
  const int rank = communicator.rank();
  const std::int64_t begin = share_begin(count, rank, communicator.size());
  share_ = share_begin(count, rank + 1, communicator.size()) - begin;
  for (int r = 0; r < communicator.size(); ++r) {
    sums_.push_back(window_->data(r) + offset + static_cast<std::size_t>(begin) * kernels::bytes_of(type));
    addends_.push_back(sums_.back());
  }
}

bool SharedAllReduce::all_reached(std::atomic<std::uint64_t> SharedWindow::Progress::*counter) const {
  for (int rank = 0; rank < communicator_.size(); ++rank)
    if ((window_->progress(rank, operation_).*counter).load(std::memory_order_acquire) < step_) return false;
  return true;
}

void SharedAllReduce::start(Stream) {
  if (active_) throw std::logic_error(fmt::format("{} started twice", name_.view()));
  sequence_ = communicator_.context().waits.enter(communicator_.channel(), name_);
  active_ = true;
  added_ = false;
  window_->progress(communicator_.rank(), operation_).ready.store(++step_, std::memory_order_release);
}

bool SharedAllReduce::progress() {
  if (!active_) return true;
  if (!added_ && all_reached(&SharedWindow::Progress::ready)) {
    sum_in_rank_order(addends_, share_, type_, sums_);
    window_->progress(communicator_.rank(), operation_).done.store(step_, std::memory_order_release);
    added_ = true;
  }
  active_ = !added_ || !all_reached(&SharedWindow::Progress::done);
  return !active_;
}

void SharedAllReduce::wait(Stream) {
  if (progress()) return;
  const WaitScope wait(communicator_.context().waits, communicator_.channel(), sequence_, name_);
  // The number of times that a waiting rank looks at the counters before it yields its core, which
  // it may share with other ranks.
  constexpr int kSpins = 200;
  for (int spin = 0; !progress(); ++spin)
    if (spin >= kSpins) ::sched_yield();
}

}  // namespace convoy::comm
