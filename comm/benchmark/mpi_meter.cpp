// Measures collectives on host memory (measure.h).
#include <algorithm>
#include <chrono>

#include "comm/benchmark/meter.h"
#include "comm/mpi_check.h"

namespace convoy::comm {
namespace {

class MpiMeter : public MeterBase {
 public:
  MpiMeter(const Communicator& ranks, std::int64_t most_bytes)
      : MeterBase(ranks, make_mpi_collectives(ranks)),
        plain_(ranks.duplicate("bench")),
        buffer_(static_cast<std::size_t>(most_bytes) / sizeof(float) + 1),
        received_(buffer_.size()) {}

  ~MpiMeter() override { forget_sums(); }

  std::string library() const override { return mpi_library(); }
  void connect() override { shared_ = collectives_->shared_memory(buffer_.size() * sizeof(float)); }

 protected:
  float* buffer() override { return buffer_.data(); }
  float* received() override { return received_.data(); }
  float* gradients() override { return shared_ ? reinterpret_cast<float*>(shared_.get()) : buffer(); }
  void copy_in(float* to, const std::vector<float>& from) override {
    std::copy(from.begin(), from.end(), to);
  }
  void copy_out(std::vector<float>& to, const float* from) override {
    std::copy_n(from, to.size(), to.begin());
  }

  void call_library(Movement movement, std::int64_t count, Stream) override {
    const int n = static_cast<int>(count), ranks = ranks_.size(), rank = ranks_.rank();
    const MPI_Comm handle = plain_.handle();
    switch (movement) {
      case Movement::all_reduce:
      case Movement::gradients:
        return check_mpi(MPI_Allreduce(MPI_IN_PLACE, data_of(movement), n, MPI_FLOAT, MPI_SUM, handle),
                         "MPI_Allreduce");
      case Movement::broadcast:
        return check_mpi(MPI_Bcast(buffer(), n, MPI_FLOAT, 0, handle), "MPI_Bcast");
      case Movement::send_receive:
        return check_mpi(MPI_Sendrecv(buffer(), n, MPI_FLOAT, (rank + 1) % ranks, 0, received(), n, MPI_FLOAT,
                                      (rank + ranks - 1) % ranks, 0, handle, MPI_STATUS_IGNORE),
                         "MPI_Sendrecv");
    }
  }

  double time(int times, const std::function<void(Stream)>& body) override {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) body({});
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
           times;
  }

 private:
  Communicator plain_;
  std::vector<float> buffer_, received_;
  std::shared_ptr<std::byte> shared_;
};

}  // namespace

std::unique_ptr<CollectivesMeter> make_mpi_meter(const Communicator& ranks, std::int64_t most_bytes) {
  return std::make_unique<MpiMeter>(ranks, most_bytes);
}

}  // namespace convoy::comm
