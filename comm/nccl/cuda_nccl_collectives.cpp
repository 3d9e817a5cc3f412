#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/local_device.h"
#include "comm/nccl/copy_all_reduce.h"
#include "comm/nccl/nccl_channel.h"
#include "comm/nccl/nccl_pairs.h"
#include "comm/nccl/nccl_types.h"
#include "comm/nccl/widen.h"
#include "comm/nccl_collectives.h"

namespace convoy::comm {
namespace {

void require_buffer(const OperationName& name, const void* data, std::int64_t count) {
  if (count < 0 || (count > 0 && data == nullptr))
    throw std::invalid_argument(fmt::format("{}: {} elements without a buffer", name.view(), count));
}

// All of a rank's connections.
struct Connections {
  explicit Connections(const Communicator& communicator)
      : ranks(communicator.duplicate(communicator.name() + " devices")), pairs(ranks) {}
  // All at once: an abort waits for the graphs that hold its operations, and those may hold the others' as well.
  void abort() noexcept {
    std::vector<std::thread> aborts;
    for (NcclChannel* channel : {buckets.get(), whole.get()})
      if (channel != nullptr) aborts.emplace_back([channel] { channel->abort(); });
    for (NcclPair* pair : pairs.all()) aborts.emplace_back([pair] { pair->abort(); });
    for (const auto& window : windows)
      aborts.emplace_back([held = window.lock()] {
        if (held != nullptr) held->stop_meeting();
      });
    for (std::thread& abort : aborts) abort.join();
  }

  Communicator ranks;
  std::vector<std::weak_ptr<PeerWindow>> windows;  // as long as somebody has their memory
  std::unique_ptr<NcclChannel> whole, buckets;
  NcclPairs pairs;
};

// What starts and waits of every operation have in common. While an exception unwinds the stack the device must not
// go on waiting for ranks that may never come, or freeing its memory would block.
class Operation : public PreparedOperation {
 public:
  Operation(Connections& connections, OperationName name) : name_(name), connections_(connections) {}
  ~Operation() override {
    if (std::uncaught_exceptions() > 0) connections_.abort();
  }
  bool progress() override { return true; }
  void follow(Stream stream) override {
    if (started_) done_.make_wait(static_cast<cudaStream_t>(stream));
  }
  void wait(Stream stream) override {
    if (started_) done_.make_wait(static_cast<cudaStream_t>(stream));
    started_ = false;
  }

 protected:
  template <typename Calls>
  void run(NcclChannel& channel, Stream stream, Calls&& calls) {
    if (started_) throw std::logic_error(fmt::format("{} started twice", name_.view()));
    if (number_ < 0) number_ = channel.number_of(name_);
    channel.run(stream, number_, done_, calls);
    started_ = true;
  }
  const OperationName name_;
  Connections& connections_;
  // Here, to be freed after the abort.
  kernels::DeviceBuffer wide_;
  std::shared_ptr<PeerWindow> window_;

 private:
  CudaEvent done_;
  int number_ = -1;
  bool started_ = false;
};

// For a single rank, whose sum is its own value.
class NoOperation : public PreparedOperation {
  void start(Stream) override {}
  bool progress() override { return true; }
  void wait(Stream) override {}
};

class AllReduce : public Operation {
 public:
  AllReduce(Connections& connections, void* data, std::int64_t count, DType type, OperationName name)
      : Operation(connections, name), data_(data), count_(count), type_(type) {
    // One addition rounds once; more would round after each.
    if (type == DType::bf16 && connections.ranks.size() > 2)
      wide_ = kernels::DeviceBuffer(static_cast<std::size_t>(count) * sizeof(float));
  }
  void start(Stream stream) override {
    // Statistics and metrics, which somebody waits for, do not queue behind gradients.
    run(type_ == DType::f64 ? *connections_.whole : *connections_.buckets, stream,
        [this](ncclComm_t communicator, cudaStream_t own) {
          auto* wide = reinterpret_cast<float*>(wide_.data());
          void* data = wide != nullptr ? wide : data_;
          if (wide != nullptr) widen_bf16(data_, wide, count_, own);
          check_nccl(
              ncclAllReduce(data, data, static_cast<std::size_t>(count_),
                            nccl_type(wide != nullptr ? DType::f32 : type_), ncclSum, communicator, own),
              name_.view(), communicator);
          if (wide != nullptr) narrow_to_bf16(wide, data_, count_, own);
        });
  }

 private:
  void* data_;
  std::int64_t count_;
  DType type_;
};

// In memory that the ranks share.
class SharedAllReduce : public Operation {
 public:
  SharedAllReduce(Connections& connections, CopyAllReduce sum, OperationName name)
      : Operation(connections, name), sum_(std::move(sum)) {
    window_ = sum_.window();
  }
  void start(Stream stream) override {
    run(*connections_.buckets, stream, [this](ncclComm_t, cudaStream_t own) { sum_.run(own); });
  }

 private:
  CopyAllReduce sum_;
};

class Transfer : public Operation {
 public:
  Transfer(Connections& connections, NcclPair& pair, bool sends, void* data, std::int64_t count, DType type,
           OperationName name)
      : Operation(connections, name),
        pair_(pair),
        sends_(sends),
        data_(data),
        count_(static_cast<std::size_t>(count)),
        type_(type) {}
  void start(Stream stream) override {
    if (count_ == 0) return;
    run(pair_.channel(stream), stream, [this](ncclComm_t communicator, cudaStream_t own) {
      const ncclResult_t status = sends_ ? ncclSend(data_, count_, nccl_type(type_), 1, communicator, own)
                                         : ncclRecv(data_, count_, nccl_type(type_), 0, communicator, own);
      settle(status, name_.view(), communicator);
    });
  }

 private:
  NcclPair& pair_;
  bool sends_;
  void* data_;
  std::size_t count_;
  DType type_;
};

// Between two windows, by the sender's copy engine. Its pair's channel gives the order and tells the watchdog; the receiver tells the
// sender where in its part, over the window's own communicator.
class CopiedTransfer : public Operation {
 public:
  CopiedTransfer(Connections& connections, NcclPair& pair, std::shared_ptr<PeerWindow> window, bool sends,
                 PeerWindow::Transfer transfer, void* data, PeerWindow::Place place, OperationName name)
      : Operation(connections, name),
        pair_(pair),
        sends_(sends),
        transfer_(transfer),
        data_(data),
        bytes_(place.bytes) {
    window_ = std::move(window);
    if (sends_)
      message_ = window_->hear(transfer_, there_);
    else
      window_->tell(transfer_, place);
  }
  ~CopiedTransfer() override { window_->forget(message_); }

  void start(Stream stream) override {
    NcclChannel& channel = pair_.channel(stream);
    if (message_ != MPI_REQUEST_NULL) {
      if (is_capturing(stream))
        throw std::logic_error(fmt::format("{}: starts for the first time inside a capture", name_.view()));
      window_->await(message_);
      if (there_.bytes != bytes_)
        throw std::logic_error(
            fmt::format("{}: {} bytes are sent, {} expected", name_.view(), bytes_, there_.bytes));
    }
    run(channel, stream, [this](ncclComm_t, cudaStream_t own) {
      sends_ ? window_->send(transfer_, data_, there_, own) : window_->receive(transfer_, own);
    });
  }

 private:
  NcclPair& pair_;
  bool sends_;
  PeerWindow::Transfer transfer_;
  void* data_;
  std::uint64_t bytes_;
  PeerWindow::Place there_;                 // once heard
  MPI_Request message_ = MPI_REQUEST_NULL;  // that tells it
};

class NcclCollectives : public Collectives {
 public:
  explicit NcclCollectives(const Communicator& communicator) : connections_(communicator) {
    if (size() == 1) return;
    refuse_shared_devices(ranks(), current_device());
    set_nccl_defaults();
    connections_.whole = open("tensors", 1);
    connections_.buckets = open("buckets", 2);
  }

  int rank() const override { return ranks().rank(); }
  int size() const override { return ranks().size(); }

  void all_reduce(void* data, std::int64_t count, DType type, ReduceOp op, Stream stream,
                  std::string_view label) override {
    const OperationName name("all_reduce", label);
    require_buffer(name, data, count);
    if (type == DType::bf16 && op != ReduceOp::sum)
      throw std::invalid_argument(fmt::format("{}: bf16 can only be summed", name.view()));
    if (size() == 1 || count == 0) return;
    if (type == DType::bf16) {
      AllReduce operation(connections_, data, count, type, name);
      operation.start(stream);
      operation.wait(stream);
      return;
    }
    run_whole(name, stream, [&](ncclComm_t communicator, cudaStream_t own) {
      return ncclAllReduce(data, data, static_cast<std::size_t>(count), nccl_type(type), nccl_op(op),
                           communicator, own);
    });
  }

  void broadcast(void* data, std::int64_t count, DType type, int root, Stream stream,
                 std::string_view label) override {
    const OperationName name("broadcast", label);
    require_buffer(name, data, count);
    if (root < 0 || root >= size())
      throw std::invalid_argument(
          fmt::format("{}: root {}, expected a rank from 0 to {}", name.view(), root, size() - 1));
    if (size() == 1 || count == 0) return;
    run_whole(name, stream, [&](ncclComm_t communicator, cudaStream_t own) {
      return ncclBroadcast(data, data, static_cast<std::size_t>(count), nccl_type(type), root, communicator,
                           own);
    });
  }

  std::unique_ptr<PreparedOperation> prepare_all_reduce(void* data, std::int64_t count, DType type,
                                                        std::string_view label) override {
    const OperationName name("all_reduce", label);
    require_buffer(name, data, count);
    if (type != DType::f32 && type != DType::f64 && type != DType::bf16)
      throw std::invalid_argument(fmt::format("{}: expected f32, f64 or bf16", name.view()));
    if (size() == 1 || count == 0) return std::make_unique<NoOperation>();
    if (type == DType::f32)
      if (auto copied = by_copies(data, count, name)) return copied;
    return std::make_unique<AllReduce>(connections_, data, count, type, name);
  }
  std::size_t scratch_bytes(std::size_t bytes) const override {
    return PeerWindow::possible(ranks()) ? PeerWindow::scratch_bytes(bytes) : 0;
  }
  std::shared_ptr<std::byte> shared_memory(std::size_t bytes) override {
    if (!PeerWindow::possible(ranks())) return nullptr;
    return peer_memory(bytes, PeerWindow::Use::sums);
  }
  std::shared_ptr<std::byte> transfer_memory(std::size_t bytes) override {
    if (!PeerWindow::possible(ranks())) return nullptr;
    return peer_memory(bytes, PeerWindow::Use::transfers);
  }
  std::unique_ptr<PreparedOperation> prepare_send(const void* data, std::int64_t count, DType type, int peer,
                                                  std::string_view label) override {
    // Only read, through the pointer that sends and receives share.
    return transfer(true, const_cast<void*>(data), count, type, peer, OperationName("send", label));
  }
  std::unique_ptr<PreparedOperation> prepare_receive(void* data, std::int64_t count, DType type, int peer,
                                                     std::string_view label) override {
    return transfer(false, data, count, type, peer, OperationName("receive", label));
  }

  BucketSizes bucket_sizes() const override { return kNcclBucketSizes; }

 private:
  std::unique_ptr<NcclChannel> open(std::string_view purpose, std::uint64_t index) const {
    return std::make_unique<NcclChannel>(connect_all(ranks(), purpose), ranks().shared_context(),
                                         derived_key(ranks().key(), (std::uint64_t{1} << 32) + index),
                                         ranks().world_ranks());
  }

  // Null where NCCL is to do it.
  std::unique_ptr<PreparedOperation> by_copies(void* data, std::int64_t count, const OperationName& name) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(float));
    if (bytes < kLeastCopiedBytes) return nullptr;
    const auto [window, offset] = find_window(PeerWindow::Use::sums, data, static_cast<std::size_t>(bytes));
    if (window == nullptr || offset % 16 != 0) return nullptr;
    return std::make_unique<SharedAllReduce>(connections_, CopyAllReduce(window, offset, count), name);
  }

  std::shared_ptr<std::byte> peer_memory(std::size_t bytes, PeerWindow::Use use) {
    const auto window = PeerWindow::create(ranks(), bytes, use);
    if (window == nullptr) return nullptr;
    connections_.windows.push_back(window);
    return {window, window->data(rank())};
  }
  // The window that holds all of it, and where; null without one.
  std::pair<std::shared_ptr<PeerWindow>, std::size_t> find_window(PeerWindow::Use use, const void* data,
                                                                  std::size_t bytes) const {
    for (const auto& held : connections_.windows)
      if (auto window = held.lock(); window != nullptr && window->use() == use)
        if (const auto offset = window->offset_of(data, bytes)) return {std::move(window), *offset};
    return {};
  }

  template <typename Call>
  void run_whole(const OperationName& name, Stream stream, Call&& call) {
    NcclChannel& whole = *connections_.whole;
    whole.run(stream, whole.number_of(name), whole_done_, [&](ncclComm_t communicator, cudaStream_t own) {
      check_nccl(call(communicator, own), name.view(), communicator);
    });
    whole_done_.make_wait(static_cast<cudaStream_t>(stream));
  }

  std::unique_ptr<PreparedOperation> transfer(bool sends, void* data, std::int64_t count, DType type,
                                              int peer, const OperationName& name) {
    if (peer < 0 || peer >= size() || peer == rank())
      throw std::invalid_argument(
          fmt::format("{}: peer {}, expected another rank from 0 to {}", name.view(), peer, size() - 1));
    require_buffer(name, data, count);
    NcclPair& pair =
        sends ? connections_.pairs.between(rank(), peer) : connections_.pairs.between(peer, rank());
    const std::size_t bytes = static_cast<std::size_t>(count) * kernels::bytes_of(type);
    if (auto [window, offset] = find_window(PeerWindow::Use::transfers, data, bytes);
        count > 0 && window != nullptr) {
      const int number = window->next_transfer(sends, peer);
      if (number < PeerWindow::kMostTransfers)
        return std::make_unique<CopiedTransfer>(connections_, pair, std::move(window), sends,
                                                PeerWindow::Transfer{peer, number}, data,
                                                PeerWindow::Place{offset, bytes}, name);
    }
    return std::make_unique<Transfer>(connections_, pair, sends, data, count, type, name);
  }

  const Communicator& ranks() const { return connections_.ranks; }

  Connections connections_;
  CudaEvent whole_done_;
};

}  // namespace

std::unique_ptr<Collectives> make_nccl_collectives(const Communicator& communicator) {
  return std::make_unique<NcclCollectives>(communicator);
}

}  // namespace convoy::comm
