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

MpiSection::MpiSection(CommContext& context) : context_(context) {
  if (context_.inside_mpi.exchange(true, std::memory_order_acquire))
    throw std::logic_error("two threads are inside MPI at once; one thread of a rank calls MPI at a time");
}

MpiSection::~MpiSection() { context_.inside_mpi.store(false, std::memory_order_release); }

}  // namespace convoy::comm
