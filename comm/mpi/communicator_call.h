// Defines Communicator::run(), the wrapper that every collective of Communicator goes through.
// Internal to comm.
#pragma once

#include <mpi.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "comm/chunks.h"
#include "comm/communicator.h"

namespace convoy::comm {

// The arguments of a collective, for the checks in Communicator::run().
struct Communicator::Call {
  CollectiveKind kind;
  std::string_view label;
  const void* data = nullptr;
  std::int64_t count = 0;  // elements of this rank's buffer
  MPI_Datatype type = MPI_BYTE;
  std::optional<int> root = {};
  std::optional<ReduceOp> op = {};
  std::string problem = {};  // error found by the collective's own checks; empty if none
  // In a gather or a scatter, a rank copies its own `count` elements from own_from to own_to. The
  // addresses are null if it has none.
  const void* own_from = nullptr;
  void* own_to = nullptr;
  OperationName name() const { return OperationName(name_of(kind), label); }
};

// Checks the call and registers it with the watchdog. body(name) then makes the MPI calls. In a
// communicator of one rank MPI is not called at all, so that several threads of a process may each
// run a training of one rank.
template <typename Body>
void Communicator::run(const Call& call, Body&& body) const {
  check(call);
  if (size_ == 1) {
    if (call.own_to != nullptr && call.own_to != call.own_from && call.count > 0)
      std::memmove(call.own_to, call.own_from, static_cast<std::size_t>(call.count * size_of(call.type)));
    return;
  }
  const OperationName name = call.name();
  const std::uint64_t sequence = context_->waits.enter(channel_, name);
  const WaitScope wait(context_->waits, channel_, sequence, name);
  const MpiSection section(*context_);
  body(name.view());
}

MPI_Op mpi_op(ReduceOp op);

}  // namespace convoy::comm
