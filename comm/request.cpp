// Non-blocking all-reduces.
#include <algorithm>
#include <exception>

#include "comm/communicator_call.h"

namespace convoy::comm {

Request Communicator::start_all_reduce_raw(void* data, std::int64_t count, MPI_Datatype type, ReduceOp op,
                                           std::string_view label) const {
  const Call call{CollectiveKind::all_reduce, label, data, count, type, {}, op};
  check(call);
  Request request;
  request.context_ = context_;
  request.name_ = call.name();
  request.channel_ = channel_;
  request.sequence_ = context_->waits.enter(channel_, request.name_);
  const MpiSection section(*context_, call.kind);
  count_call(*context_, call.kind, count * size_of(type));
  for_each_piece(count, type, context_->piece_bytes, [&](std::int64_t offset, int piece) {
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, at(data, offset), piece, type, mpi_op(op), handle_,
                             &request.pieces_.emplace_back(MPI_REQUEST_NULL)),
              request.name_.view());
  });
  return request;
}

bool Request::test() {
  if (pieces_.empty()) return true;
  const MpiSection section(*context_, CollectiveKind::all_reduce);
  int finished = 0;
  check_mpi(MPI_Testall(static_cast<int>(pieces_.size()), pieces_.data(), &finished, MPI_STATUSES_IGNORE),
            name_.view());
  if (finished) pieces_.clear();
  return finished != 0;
}

void Request::wait() {
  if (pieces_.empty()) return;
  const WaitScope wait(context_->waits, channel_, sequence_, name_);
  const MpiSection section(*context_, CollectiveKind::all_reduce);
  check_mpi(MPI_Waitall(static_cast<int>(pieces_.size()), pieces_.data(), MPI_STATUSES_IGNORE), name_.view());
  pieces_.clear();
}

Request& Request::operator=(Request&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(pieces_, other.pieces_);
  std::swap(name_, other.name_);
  std::swap(channel_, other.channel_);
  std::swap(sequence_, other.sequence_);
  return *this;
}

Request::~Request() {
  // A rank that unwinds from an error must not wait for the others, who may never come.
  if (pieces_.empty() || std::uncaught_exceptions() > 0) return;
  try {
    wait();
  } catch (const std::exception&) {  // reported by the next call on the communicator
  }
}

}  // namespace convoy::comm
