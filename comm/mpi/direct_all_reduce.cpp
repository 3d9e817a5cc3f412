#include "comm/mpi/direct_all_reduce.h"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>

#include "comm/mpi/sum_in_rank_order.h"
#include "comm/mpi_check.h"
#include "comm/shares.h"

namespace convoy::comm {
namespace {

// Keeps every message below 2^31 bytes.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;

}  // namespace

DirectAllReduce::DirectAllReduce(const Communicator& communicator, int tag, void* data, std::int64_t count,
                                 DType type, std::string_view label)
    : communicator_(communicator),
      data_(static_cast<std::byte*>(data)),
      count_(count),
      element_bytes_(static_cast<std::int64_t>(kernels::bytes_of(type))),
      type_(type),
      name_(name_of(CollectiveKind::all_reduce), label) {
  if (count < 0 || count > kMaxElements)
    throw std::invalid_argument(
        fmt::format("{}: {} elements, expected at most {}", name_.view(), count, kMaxElements));
  require_summable(type, name_.view());
  for (int rank = 0; rank < communicator.size(); ++rank)
    if (rank != communicator.rank()) others_.push_back(rank);
  prepare_messages(tag);
}

DirectAllReduce::~DirectAllReduce() {
  int finalized = 0;
  if (std::uncaught_exceptions() > 0 || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
  try {
    wait({});
    // Ignore a failure of wait(): the requests are freed below in any case.
  } catch (const std::exception&) {
  }
  for (MPI_Request& request : requests_)
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

std::int64_t DirectAllReduce::begin(int rank) const {
  return share_begin(count_, rank, communicator_.size());
}

void DirectAllReduce::prepare_messages(int tag) {
  const int rank = communicator_.rank();
  const auto begin = [&](int r) { return data_ + this->begin(r) * element_bytes_; };
  const auto bytes = [&](int r) {
    return static_cast<int>((this->begin(r + 1) - this->begin(r)) * element_bytes_);
  };
  const std::size_t mine = static_cast<std::size_t>(bytes(rank));
  parts_.resize(mine * others_.size());
  requests_.assign(others_.size() * kMessages, MPI_REQUEST_NULL);
  finished_.resize(requests_.size());
  sum_ = {begin(rank)};
  addends_.assign(others_.size() + 1, begin(rank));
  const MPI_Comm handle = communicator_.handle();
  for (std::size_t i = 0; i < others_.size(); ++i) {
    const int other = others_[i], index = static_cast<int>(i);
    std::byte* part = parts_.data() + i * mine;
    addends_[other] = part;
    check_mpi(MPI_Recv_init(part, bytes(rank), MPI_BYTE, other, tag, handle,
                            &request(Message::receive_part, index)),
              name_.view());
    check_mpi(MPI_Send_init(begin(other), bytes(other), MPI_BYTE, other, tag, handle,
                            &request(Message::send_part, index)),
              name_.view());
    check_mpi(MPI_Recv_init(begin(other), bytes(other), MPI_BYTE, other, tag + 1, handle,
                            &request(Message::receive_sum, index)),
              name_.view());
    check_mpi(MPI_Send_init(begin(rank), bytes(rank), MPI_BYTE, other, tag + 1, handle,
                            &request(Message::send_sum, index)),
              name_.view());
  }
}

void DirectAllReduce::start_message(Message message, int other) {
  check_mpi(MPI_Start(&request(message, other)), name_.view());
}

void DirectAllReduce::start(Stream) {
  if (messages_left_ != 0) throw std::logic_error(fmt::format("{} started twice", name_.view()));
  CommContext& context = communicator_.context();
  sequence_ = context.waits.enter(communicator_.channel(), name_);
  const MpiSection section(context);
  const int others = static_cast<int>(others_.size());
  parts_missing_ = others;
  messages_left_ = others * kMessages;
  for (int other = 0; other < others; ++other) start_message(Message::receive_part, other);
  for (int other = 0; other < others; ++other) start_message(Message::send_part, other);
}

void DirectAllReduce::handle_finished(int finished) {
  messages_left_ -= finished;
  for (int i = 0; i < finished; ++i) {
    const int index = finished_[i];
    const auto message = static_cast<Message>(index % kMessages);
    // This rank receives the sum of a share into the memory from which it sends its own values of
    // that share. So start to receive the sum only after the values have been sent.
    if (message == Message::send_part) start_message(Message::receive_sum, index / kMessages);
    if (message == Message::receive_part && --parts_missing_ == 0) add_parts();
  }
}

void DirectAllReduce::add_parts() {
  const int rank = communicator_.rank();
  sum_in_rank_order(addends_, begin(rank + 1) - begin(rank), type_, sum_);
  for (int other = 0; other < static_cast<int>(others_.size()); ++other)
    start_message(Message::send_sum, other);
}

bool DirectAllReduce::progress() {
  if (messages_left_ == 0) return true;
  const MpiSection section(communicator_.context());
  int finished = 0;
  check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &finished, finished_.data(),
                         MPI_STATUSES_IGNORE),
            name_.view());
  handle_finished(finished);
  return messages_left_ == 0;
}

void DirectAllReduce::wait(Stream) {
  if (messages_left_ == 0) return;
  CommContext& context = communicator_.context();
  const WaitScope wait(context.waits, communicator_.channel(), sequence_, name_);
  const MpiSection section(context);
  while (messages_left_ > 0) {
    int finished = 0;
    check_mpi(MPI_Waitsome(static_cast<int>(requests_.size()), requests_.data(), &finished, finished_.data(),
                           MPI_STATUSES_IGNORE),
              name_.view());
    handle_finished(finished);
  }
}

}  // namespace convoy::comm
