// Implements Collectives by MPI on host memory. Streams are ignored.
#include <fmt/format.h>

#include <exception>
#include <stdexcept>

#include "comm/chunks.h"
#include "comm/collectives.h"
#include "comm/communicator.h"
#include "comm/mpi/direct_all_reduce.h"
#include "comm/mpi/shared_all_reduce.h"
#include "comm/mpi_check.h"
#include "comm/shared_window.h"

namespace convoy::comm {
namespace {

MPI_Datatype mpi_type_of(DType type) {
  switch (type) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i32:
      return MPI_INT32_T;
    case DType::u8:
      return MPI_UINT8_T;
    case DType::bf16:
      return MPI_UINT16_T;  // only transfers use this type, never reductions
  }
  throw std::invalid_argument("unknown element type");
}

// One end of a message between two ranks, from or to a fixed buffer, by persistent MPI requests.
class PreparedTransfer : public PreparedOperation {
 public:
  PreparedTransfer(const Communicator& communicator, CollectiveKind kind, void* data, std::int64_t count,
                   DType type, int peer, std::string_view label)
      : communicator_(communicator), kind_(kind), name_(name_of(kind), label) {
    if (peer < 0 || peer >= communicator.size() || peer == communicator.rank())
      throw std::invalid_argument(fmt::format("{}: peer {}, expected another rank from 0 to {}", name_.view(),
                                              peer, communicator.size() - 1));
    if (count < 0 || (count > 0 && data == nullptr))
      throw std::invalid_argument(fmt::format("{}: {} elements without a buffer", name_.view(), count));
    const MPI_Datatype mpi = mpi_type_of(type);
    for_each_chunk(count, mpi, communicator.context().chunk_bytes, [&](std::int64_t offset, int chunk) {
      MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
      std::byte* place = at(data, offset);
      const MPI_Comm handle = communicator.handle();
      check_mpi(kind == CollectiveKind::send ? MPI_Send_init(place, chunk, mpi, peer, 0, handle, &request)
                                             : MPI_Recv_init(place, chunk, mpi, peer, 0, handle, &request),
                name_.view());
    });
    open_channel(peer);
  }
  ~PreparedTransfer() override {
    int finalized = 0;
    if (std::uncaught_exceptions() > 0 || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }
  PreparedTransfer(const PreparedTransfer&) = delete;
  PreparedTransfer& operator=(const PreparedTransfer&) = delete;

  void start(Stream) override {
    if (active_) throw std::logic_error(fmt::format("{} started twice", name_.view()));
    sequence_ = context().waits.enter(channel_, name_);
    const MpiSection section(context());
    if (requests_.empty()) return;  // an empty message has no requests
    check_mpi(MPI_Startall(static_cast<int>(requests_.size()), requests_.data()), name_.view());
    active_ = true;
  }
  bool progress() override {
    if (!active_) return true;
    const MpiSection section(context());
    int finished = 0;
    check_mpi(
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &finished, MPI_STATUSES_IGNORE),
        name_.view());
    active_ = finished == 0;
    return !active_;
  }
  void wait(Stream) override {
    if (!active_) return;
    const WaitScope wait(context().waits, channel_, sequence_, name_);
    const MpiSection section(context());
    check_mpi(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
              name_.view());
    active_ = false;
  }

 private:
  CommContext& context() const { return communicator_.context(); }

  // Opens the watchdog's channel (wait_registry.h) for messages from one rank to another. Each
  // direction between two ranks has a channel of its own, because the members of a channel must
  // count the same messages.
  void open_channel(int peer) {
    const int rank = communicator_.rank();
    const auto from = static_cast<std::size_t>(kind_ == CollectiveKind::send ? rank : peer);
    const auto to = static_cast<std::size_t>(kind_ == CollectiveKind::send ? peer : rank);
    const std::uint64_t key =
        derived_key(communicator_.key(), from * static_cast<std::size_t>(communicator_.size()) + to);
    const std::vector<int>& world = communicator_.world_ranks();
    channel_ = context().waits.open_channel(key, {world[from], world[to]});
  }

  const Communicator& communicator_;
  CollectiveKind kind_;
  OperationName name_;
  std::vector<MPI_Request> requests_;
  int channel_ = 0;
  std::uint64_t sequence_ = 0;
  bool active_ = false;
};

class MpiCollectives : public Collectives {
 public:
  explicit MpiCollectives(const Communicator& communicator)
      : whole_(communicator.duplicate(communicator.name() + " tensors")),
        buckets_(communicator.duplicate(communicator.name() + " buckets")),
        pairs_(communicator.duplicate(communicator.name() + " pairs")) {}

  int rank() const override { return whole_.rank(); }
  int size() const override { return whole_.size(); }

  void all_reduce(void* data, std::int64_t count, DType type, ReduceOp op, Stream,
                  std::string_view label) override {
    if (type != DType::bf16) return whole_.all_reduce_raw(data, count, mpi_type_of(type), op, label);
    if (op != ReduceOp::sum)
      throw std::invalid_argument(fmt::format("all_reduce {}: bf16 can only be summed", label));
    // MPI does not know bf16, so use Convoy's own all-reduce. The operation ends before this
    // function returns, so its tags can be used again.
    DirectAllReduce operation(buckets_, next_tag_, data, count, type, label);
    operation.start({});
    operation.wait({});
  }
  void broadcast(void* data, std::int64_t count, DType type, int root, Stream,
                 std::string_view label) override {
    whole_.broadcast_raw(data, count, mpi_type_of(type), root, label);
  }
  std::shared_ptr<std::byte> shared_memory(std::size_t bytes) override {
    if (size() == 1 || whole_.local_size() < size()) return nullptr;
    const auto window = SharedWindow::create(whole_, bytes);
    if (window == nullptr) return nullptr;
    windows_.push_back({window, 0});
    return {window, window->data(rank())};
  }
  std::unique_ptr<PreparedOperation> prepare_all_reduce(void* data, std::int64_t count, DType type,
                                                        std::string_view label) override {
    for (auto& [window, operations] : windows_) {
      const std::ptrdiff_t offset = static_cast<std::byte*>(data) - window->data(rank());
      const std::ptrdiff_t bytes = count * static_cast<std::ptrdiff_t>(kernels::bytes_of(type));
      if (offset >= 0 && offset + bytes <= static_cast<std::ptrdiff_t>(window->bytes()) &&
          operations < SharedWindow::kOperations)
        return std::make_unique<SharedAllReduce>(buckets_, window, operations++,
                                                 static_cast<std::size_t>(offset), count, type, label);
    }
    auto operation = std::make_unique<DirectAllReduce>(buckets_, next_tag_, data, count, type, label);
    next_tag_ += 2;
    return operation;
  }
  std::unique_ptr<PreparedOperation> prepare_send(const void* data, std::int64_t count, DType type, int peer,
                                                  std::string_view label) override {
    // Sends and receives share one class, which stores a pointer to non-const data. A send only
    // reads.
    return std::make_unique<PreparedTransfer>(pairs_, CollectiveKind::send, const_cast<void*>(data), count,
                                              type, peer, label);
  }
  std::unique_ptr<PreparedOperation> prepare_receive(void* data, std::int64_t count, DType type, int peer,
                                                     std::string_view label) override {
    return std::make_unique<PreparedTransfer>(pairs_, CollectiveKind::receive, data, count, type, peer,
                                              label);
  }

 private:
  struct WindowUse {
    std::shared_ptr<SharedWindow> memory;
    std::size_t operations;  // number of operations prepared in this window so far
  };

  Communicator whole_, buckets_, pairs_;
  std::vector<WindowUse> windows_;
  int next_tag_ = 0;
};

}  // namespace

std::unique_ptr<Collectives> make_mpi_collectives(const Communicator& communicator) {
  return std::make_unique<MpiCollectives>(communicator);
}

}  // namespace convoy::comm
