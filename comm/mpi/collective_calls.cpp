// Implements Communicator's barrier, broadcast and reductions, and checks the arguments of every
// collective.
#include <fmt/format.h>

#include <stdexcept>

#include "comm/mpi/communicator_call.h"

namespace convoy::comm {

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::min:
      return MPI_MIN;
  }
  throw std::invalid_argument("unknown reduction");
}

void Communicator::check(const Call& call) const {
  std::string problem = call.problem;
  if (call.count > 0 && call.data == nullptr)
    problem = fmt::format("no buffer for {} elements", call.count);
  else if (call.root && (*call.root < 0 || *call.root >= size_))
    problem = fmt::format("root {}, expected a rank from 0 to {}", *call.root, size_ - 1);
  else if (call.op && (call.type == MPI_BYTE || call.type == MPI_CHAR))
    problem = "bytes and characters cannot be reduced";
  if (!problem.empty())
    throw std::invalid_argument(fmt::format("{} on {}: {}", call.name().view(), name_, problem));
}

void Communicator::barrier(std::string_view label) const {
  run({.kind = CollectiveKind::barrier, .label = label},
      [&](std::string_view name) { check_mpi(MPI_Barrier(handle_), name); });
}

void Communicator::broadcast_raw(void* data, std::int64_t count, MPI_Datatype type, int root,
                                 std::string_view label) const {
  run({CollectiveKind::broadcast, label, data, count, type, root}, [&](std::string_view name) {
    for_each_chunk(count, type, context_->chunk_bytes, [&](std::int64_t offset, int chunk) {
      check_mpi(MPI_Bcast(at(data, offset), chunk, type, root, handle_), name);
    });
  });
}

std::string Communicator::broadcast(std::string text, int root, std::string_view label) const {
  std::int64_t length = std::ssize(text);
  broadcast(std::span<std::int64_t>(&length, 1), root, label);
  text.resize(static_cast<std::size_t>(length));
  broadcast(std::span<char>(text), root, label);
  return text;
}

void Communicator::all_reduce_raw(void* data, std::int64_t count, MPI_Datatype type, ReduceOp op,
                                  std::string_view label) const {
  run({CollectiveKind::all_reduce, label, data, count, type, {}, op}, [&](std::string_view name) {
    for_each_chunk(count, type, context_->chunk_bytes, [&](std::int64_t offset, int chunk) {
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, at(data, offset), chunk, type, mpi_op(op), handle_), name);
    });
  });
}

void Communicator::reduce_raw(void* data, std::int64_t count, MPI_Datatype type, ReduceOp op, int root,
                              std::string_view label) const {
  run({CollectiveKind::reduce, label, data, count, type, root, op}, [&](std::string_view name) {
    for_each_chunk(count, type, context_->chunk_bytes, [&](std::int64_t offset, int chunk) {
      std::byte* place = at(data, offset);
      const void* from = rank_ == root ? MPI_IN_PLACE : place;
      check_mpi(MPI_Reduce(from, place, chunk, type, mpi_op(op), root, handle_), name);
    });
  });
}

}  // namespace convoy::comm
