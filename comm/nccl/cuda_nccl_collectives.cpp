#include <fmt/format.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/nccl/nccl_collectives.h"
#include "comm/nccl/nccl_operations.h"
#include "comm/nccl/nccl_types.h"
#include "comm/placement/local_device.h"

namespace convoy::comm {
namespace {

void require_buffer(const OperationName& name, const void* data, std::int64_t count) {
  if (count < 0 || (count > 0 && data == nullptr))
    throw std::invalid_argument(fmt::format("{}: {} elements without a buffer", name.view(), count));
}

class NcclCollectives : public Collectives {
 public:
  NcclCollectives(const Communicator& communicator, Sums sums) : connections_(communicator) {
    if (size() == 1) return;
    refuse_shared_devices(ranks(), current_device());
    set_nccl_defaults();
    // NCCL reserves some MiB for each block, but sums of a few KiB use only one or two blocks. So
    // limit the number of blocks if all sums are small.
    constexpr int kFewBlocks = 4;
    connections_.whole = open("tensors", 1, sums == Sums::small ? kFewBlocks : 0);
    if (sums == Sums::gradients) connections_.buckets = open("buckets", 2, 0);
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
      const auto operation = sum_by_nccl(connections_, data, count, type, name);
      operation->start(stream);
      operation->wait(stream);
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
    if (size() == 1 || count == 0) return no_operation();
    if (type == DType::f32)
      if (auto copied = by_copies(data, count, name)) return copied;
    return sum_by_nccl(connections_, data, count, type, name);
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
    // Sends and receives share one class, which stores a pointer to non-const data. A send only
    // reads.
    return transfer(true, const_cast<void*>(data), count, type, peer, OperationName("send", label));
  }
  std::unique_ptr<PreparedOperation> prepare_receive(void* data, std::int64_t count, DType type, int peer,
                                                     std::string_view label) override {
    return transfer(false, data, count, type, peer, OperationName("receive", label));
  }

  BucketSizes bucket_sizes() const override { return kNcclBucketSizes; }

 private:
  std::unique_ptr<NcclChannel> open(std::string_view purpose, std::uint64_t index, int blocks) const {
    return std::make_unique<NcclChannel>(connect_all(ranks(), purpose, blocks), ranks().shared_context(),
                                         derived_key(ranks().key(), (std::uint64_t{1} << 32) + index),
                                         ranks().world_ranks());
  }

  // Returns an all-reduce that the GPUs' copy engines carry out. Returns null if the data are too
  // small, or do not lie in memory that the ranks share.
  std::unique_ptr<PreparedOperation> by_copies(void* data, std::int64_t count, const OperationName& name) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(float));
    if (bytes < kLeastCopiedBytes) return nullptr;
    const auto [window, offset] = find_window(PeerWindow::Use::sums, data, static_cast<std::size_t>(bytes));
    if (window == nullptr || offset % 16 != 0) return nullptr;
    return sum_by_copies(connections_, CopyAllReduce(window, offset, count), name);
  }

  std::shared_ptr<std::byte> peer_memory(std::size_t bytes, PeerWindow::Use use) {
    const auto window = PeerWindow::create(ranks(), bytes, use);
    if (window == nullptr) return nullptr;
    connections_.windows.push_back(window);
    return {window, window->data(rank())};
  }
  // Returns the window (shared device memory) that holds the whole buffer, and the offset of the
  // buffer in the window. Returns null if no window holds it.
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
    whole_done_.make_wait(stream.get());
  }

  std::unique_ptr<PreparedOperation> transfer(bool sends, void* data, std::int64_t count, DType type,
                                              int peer, const OperationName& name) {
    if (peer < 0 || peer >= size() || peer == rank())
      throw std::invalid_argument(
          fmt::format("{}: peer {}, expected another rank from 0 to {}", name.view(), peer, size() - 1));
    require_buffer(name, data, count);
    const TransferSide side{peer, sends, data, count, type};
    const std::size_t bytes = static_cast<std::size_t>(count) * kernels::bytes_of(type);
    if (auto [window, offset] = find_window(PeerWindow::Use::transfers, data, bytes);
        count > 0 && window != nullptr) {
      const int number = window->next_transfer(sends, peer);
      return transfer_by_copies(connections_, side, std::move(window), number, offset, name);
    }
    return transfer_by_nccl(connections_, side, name);
  }

  const Communicator& ranks() const { return connections_.ranks; }

  Connections connections_;
  CudaEvent whole_done_;
};

}  // namespace

std::unique_ptr<Collectives> make_nccl_collectives(const Communicator& communicator, Sums sums) {
  return std::make_unique<NcclCollectives>(communicator, sums);
}

}  // namespace convoy::comm
