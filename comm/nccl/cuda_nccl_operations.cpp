#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "comm/nccl/nccl_operations.h"
#include "comm/nccl/nccl_types.h"
#include "comm/nccl/widen.h"

namespace convoy::comm {
namespace {

// The code of start() and wait() that all operations share. While an exception unwinds the stack,
// the destructor aborts all connections. Otherwise the memory could not be freed: freeing blocks
// while the device waits for ranks that may never come.
class Operation : public PreparedOperation {
 public:
  Operation(Connections& connections, OperationName name) : name_(name), connections_(connections) {}
  ~Operation() override {
    if (std::uncaught_exceptions() > 0) Connections::abort_all();
  }
  bool progress() override { return true; }
  void follow(Stream stream) override {
    if (started_) done_.make_wait(stream.get());
  }
  void wait(Stream stream) override {
    if (started_) done_.make_wait(stream.get());
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
  // These members are in the base class, so that they are freed only after the destructor of the
  // base class has aborted the connections.
  kernels::DeviceBuffer wide_;
  std::shared_ptr<PeerWindow> window_;

 private:
  CudaEvent done_;
  int number_ = -1;
  bool started_ = false;
};

class NoOperation : public PreparedOperation {
  void start(Stream) override {}
  bool progress() override { return true; }
  void wait(Stream) override {}
};

class AllReduce : public Operation {
 public:
  AllReduce(Connections& connections, void* data, std::int64_t count, DType type, OperationName name)
      : Operation(connections, name), data_(data), count_(count), type_(type) {
    // NCCL rounds bf16 after each addition. With two ranks there is only one addition. With more,
    // sum in float, so that results are rounded only once.
    if (type == DType::bf16 && connections.ranks.size() > 2)
      wide_ = kernels::DeviceBuffer(static_cast<std::size_t>(count) * sizeof(float));
  }
  void start(Stream stream) override {
    // Sums of f64 are statistics and metrics. They use another channel than gradients, so that they
    // do not wait until large sums of gradients are finished.
    run(type_ == DType::f64 ? *connections_.whole : connections_.of_gradients(), stream,
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

// An all-reduce by copy engines in memory that the ranks share (copy_all_reduce.h).
class CopyEngineAllReduce : public Operation {
 public:
  CopyEngineAllReduce(Connections& connections, CopyAllReduce sum, OperationName name)
      : Operation(connections, name), sum_(std::move(sum)) {
    window_ = sum_.window();
  }
  void start(Stream stream) override {
    run(connections_.of_gradients(), stream, [this](ncclComm_t, cudaStream_t own) { sum_.run(own); });
  }

 private:
  CopyAllReduce sum_;
};

class NcclTransfer : public Operation {
 public:
  NcclTransfer(Connections& connections, const TransferSide& side, OperationName name)
      : Operation(connections, name),
        side_(side),
        sender_(side.sends ? connections.ranks.rank() : side.peer),
        receiver_(side.sends ? side.peer : connections.ranks.rank()) {
    if (side.count > 0) connections.pairs.prepare(sender_, receiver_);
  }
  void start(Stream stream) override {
    if (side_.count == 0) return;
    run(connections_.pairs.connected(sender_, receiver_, stream), stream,
        [this](ncclComm_t communicator, cudaStream_t own) {
          const auto count = static_cast<std::size_t>(side_.count);
          const ncclDataType_t type = nccl_type(side_.type);
          check_nccl(side_.sends ? ncclSend(side_.data, count, type, 1, communicator, own)
                                 : ncclRecv(side_.data, count, type, 0, communicator, own),
                     name_.view(), communicator);
        });
  }

 private:
  TransferSide side_;
  int sender_, receiver_;
};

class CopiedTransfer : public Operation {
 public:
  CopiedTransfer(Connections& connections, const TransferSide& side, std::shared_ptr<PeerWindow> window,
                 PeerWindow::TransferId transfer, PeerWindow::RemoteSlot here, OperationName name)
      : Operation(connections, name),
        side_(side),
        channel_(side.sends ? connections.copies(connections.ranks.rank(), side.peer)
                            : connections.copies(side.peer, connections.ranks.rank())),
        transfer_(transfer),
        bytes_(here.bytes) {
    window_ = std::move(window);
    if (!side_.sends) window_->publish_slot(transfer_, here);
  }

  void start(Stream stream) override {
    if (side_.sends && there_.bytes == 0) {
      if (is_capturing(stream))
        throw std::logic_error(fmt::format("{}: starts for the first time inside a capture", name_.view()));
      const PeerWindow::RemoteSlot there = window_->wait_for_slot(transfer_);
      if (there.bytes != bytes_)
        throw std::logic_error(
            fmt::format("{}: {} bytes are sent, {} expected", name_.view(), bytes_, there.bytes));
      there_ = there;
    }
    run(channel_, stream, [this](ncclComm_t, cudaStream_t own) {
      side_.sends ? window_->send(transfer_, side_.data, there_, own) : window_->receive(transfer_, own);
    });
  }

 private:
  TransferSide side_;
  NcclChannel& channel_;
  PeerWindow::TransferId transfer_;
  std::uint64_t bytes_;
  PeerWindow::RemoteSlot there_;  // the place in the receiver's memory; known after the first start
};

}  // namespace

std::unique_ptr<PreparedOperation> no_operation() { return std::make_unique<NoOperation>(); }

std::unique_ptr<PreparedOperation> sum_by_nccl(Connections& connections, void* data, std::int64_t count,
                                               DType type, OperationName name) {
  return std::make_unique<AllReduce>(connections, data, count, type, name);
}
std::unique_ptr<PreparedOperation> sum_by_copies(Connections& connections, CopyAllReduce sum,
                                                 OperationName name) {
  return std::make_unique<CopyEngineAllReduce>(connections, std::move(sum), name);
}
std::unique_ptr<PreparedOperation> transfer_by_nccl(Connections& connections, const TransferSide& side,
                                                    OperationName name) {
  return std::make_unique<NcclTransfer>(connections, side, name);
}
std::unique_ptr<PreparedOperation> transfer_by_copies(Connections& connections, const TransferSide& side,
                                                      std::shared_ptr<PeerWindow> window, int number,
                                                      std::size_t offset, OperationName name) {
  const std::size_t bytes = static_cast<std::size_t>(side.count) * kernels::bytes_of(side.type);
  return std::make_unique<CopiedTransfer>(connections, side, std::move(window),
                                          PeerWindow::TransferId{side.peer, number},
                                          PeerWindow::RemoteSlot{offset, bytes}, name);
}

}  // namespace convoy::comm
