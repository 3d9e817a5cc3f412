#include "comm/scatter_feed.h"

#include <fmt/format.h>

#include <climits>
#include <exception>
#include <stdexcept>

#include "comm/mpi_check.h"

namespace convoy::comm {
namespace {

const Communicator& checked(const Communicator& communicator, std::int64_t sample_bytes,
                            std::string_view label, int root) {
  if (sample_bytes < 1 || sample_bytes > INT_MAX || root < 0 || root >= communicator.size())
    throw std::invalid_argument(
        fmt::format("scatter {}: samples of {} bytes from rank {}, expected 1 to {} and a rank from 0 to {}",
                    label, sample_bytes, root, INT_MAX, communicator.size() - 1));
  return communicator;
}

}  // namespace

ScatterFeed::ScatterFeed(const Communicator& communicator, std::int64_t sample_bytes, std::string_view label,
                         int root)
    : communicator_(
          checked(communicator, sample_bytes, label, root).duplicate(fmt::format("{} feed", label))),
      name_(name_of(CollectiveKind::scatter), label),
      root_(root),
      sample_bytes_(sample_bytes),
      counts_(static_cast<std::size_t>(communicator.size())),
      displacements_(counts_.size()) {
  check_mpi(MPI_Type_contiguous(static_cast<int>(sample_bytes), MPI_BYTE, &sample_), name_.view());
  check_mpi(MPI_Type_commit(&sample_), name_.view());
}

ScatterFeed::~ScatterFeed() {
  int finalized = 0;
  if (std::uncaught_exceptions() > 0 || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
  try {
    wait();
  } catch (const std::exception&) {  // the next call on another communicator reports it
  }
  MPI_Type_free(&sample_);
}

void ScatterFeed::set_counts(std::span<const std::byte> batch, std::span<const std::int64_t> counts,
                             std::span<std::byte> mine) {
  if (counts.size() != counts_.size())
    throw std::invalid_argument(fmt::format("{}: {} counts, expected one for each of {} ranks", name_.view(),
                                            counts.size(), counts_.size()));
  std::int64_t first = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] < 0 || first + counts[rank] > INT_MAX)
      throw std::invalid_argument(fmt::format("{}: {} samples for rank {} after {}, expected 0 to {} in all",
                                              name_.view(), counts[rank], rank, first, INT_MAX));
    counts_[rank] = static_cast<int>(counts[rank]);
    displacements_[rank] = static_cast<int>(first);
    first += counts[rank];
  }
  const std::int64_t own = counts[static_cast<std::size_t>(root_)] * sample_bytes_;
  if (std::ssize(batch) != first * sample_bytes_ || std::ssize(mine) != own)
    throw std::invalid_argument(
        fmt::format("{}: a batch of {} bytes and {} of the root's own, expected {} and {}", name_.view(),
                    batch.size(), mine.size(), first * sample_bytes_, own));
}

void ScatterFeed::start(std::span<const std::byte> batch, std::span<const std::int64_t> counts,
                        std::span<std::byte> mine) {
  if (request_ != MPI_REQUEST_NULL) throw std::logic_error(fmt::format("{}: started twice", name_.view()));
  const bool is_root = communicator_.rank() == root_;
  if (is_root) set_counts(batch, counts, mine);
  if (std::ssize(mine) % sample_bytes_ != 0 || std::ssize(mine) / sample_bytes_ > INT_MAX)
    throw std::invalid_argument(fmt::format("{}: room for {} bytes, expected whole samples of {}",
                                            name_.view(), mine.size(), sample_bytes_));
  CommContext& context = communicator_.context();
  sequence_ = context.waits.enter(communicator_.channel(), name_);
  const MpiSection section(context, CollectiveKind::scatter);
  count_call(context, CollectiveKind::scatter, std::ssize(mine));
  check_mpi(MPI_Iscatterv(batch.data(), counts_.data(), displacements_.data(), sample_, mine.data(),
                          static_cast<int>(std::ssize(mine) / sample_bytes_), sample_, root_,
                          communicator_.handle(), &request_),
            name_.view());
}

bool ScatterFeed::progress() {
  if (request_ == MPI_REQUEST_NULL) return true;
  const MpiSection section(communicator_.context(), CollectiveKind::scatter);
  int finished = 0;
  check_mpi(MPI_Test(&request_, &finished, MPI_STATUS_IGNORE), name_.view());
  return finished != 0;
}

double ScatterFeed::wait() {
  if (request_ == MPI_REQUEST_NULL) return 0;
  const auto begin = Clock::now();
  CommContext& context = communicator_.context();
  const WaitScope wait(context.waits, communicator_.channel(), sequence_, name_);
  const MpiSection section(context, CollectiveKind::scatter);
  check_mpi(MPI_Wait(&request_, MPI_STATUS_IGNORE), name_.view());
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace convoy::comm
