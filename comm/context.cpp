#include "comm/context.h"

#include <stdexcept>

namespace convoy::comm {

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::gather:
      return "gather";
    case CollectiveKind::scatter:
      return "scatter";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::barrier:
      return "barrier";
    case CollectiveKind::send:
      return "send";
    case CollectiveKind::receive:
      return "receive";
  }
  return "unknown";
}

MpiSection::MpiSection(CommContext& context, CollectiveKind kind)
    : context_(context), kind_(kind), start_(Clock::now()) {
  if (context_.inside_mpi.exchange(true, std::memory_order_acquire))
    throw std::logic_error("two threads are inside MPI at once; one thread of a rank calls MPI at a time");
}

MpiSection::~MpiSection() {
  auto& counter = context_.counters[static_cast<std::size_t>(kind_)];
  counter.seconds += std::chrono::duration<double>(Clock::now() - start_).count();
  context_.inside_mpi.store(false, std::memory_order_release);
}

void count_call(CommContext& context, CollectiveKind kind, std::int64_t bytes) {
  auto& counter = context.counters[static_cast<std::size_t>(kind)];
  ++counter.calls;
  counter.bytes += static_cast<std::uint64_t>(bytes);
}

}  // namespace convoy::comm
