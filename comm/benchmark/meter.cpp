#include "comm/benchmark/meter.h"

#include <algorithm>

namespace convoy::comm {
namespace {

// Returns a whole number that depends on the rank and the element. It is small, so that sums over
// the ranks are exact in float.
float value_of(int rank, std::int64_t index) { return static_cast<float>((index * 7 + rank * 31) % 1021); }

bool reduces(Movement movement) {
  return movement == Movement::all_reduce || movement == Movement::gradients;
}

}  // namespace

const char* name_of(Movement movement) {
  switch (movement) {
    case Movement::all_reduce:
      return "all-reduce";
    case Movement::gradients:
      return "gradients";
    case Movement::broadcast:
      return "broadcast";
    case Movement::send_receive:
      return "send-receive";
  }
  return "unknown";
}

double bus_factor(Movement movement, int ranks) { return reduces(movement) ? 2.0 * (ranks - 1) / ranks : 1; }

// Returns the prepared all-reduce of a buffer. It is prepared only once per buffer and then kept:
// each prepared operation takes some of a limited number of counters and never gives them back.
std::shared_ptr<PreparedOperation> MeterBase::sum_of(float* data, std::int64_t count) {
  auto& sum = sums_[{data, count}];
  if (sum == nullptr) sum = collectives_->prepare_all_reduce(data, count, DType::f32, "bench");
  return sum;
}

std::function<void(Stream)> MeterBase::body_of(Movement movement, std::int64_t count, Way way) {
  if (way == Way::library)
    return [this, movement, count](Stream stream) { call_library(movement, count, stream); };
  if (movement == Movement::broadcast)
    return [this, count](Stream stream) {
      collectives_->broadcast(buffer(), count, DType::f32, 0, stream, "bench");
    };
  std::vector<std::shared_ptr<PreparedOperation>> operations;
  if (reduces(movement)) {
    operations.push_back(sum_of(data_of(movement), count));
  } else {
    const int ranks = ranks_.size(), rank = ranks_.rank();
    operations.push_back(
        collectives_->prepare_receive(received(), count, DType::f32, (rank + ranks - 1) % ranks, "bench"));
    operations.push_back(
        collectives_->prepare_send(buffer(), count, DType::f32, (rank + 1) % ranks, "bench"));
  }
  return [operations = std::move(operations)](Stream stream) {
    for (const auto& operation : operations) operation->start(stream);
    for (const auto& operation : operations) operation->wait(stream);
  };
}

bool MeterBase::correct(Movement movement, std::int64_t bytes, Way way) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
  const int ranks = ranks_.size(), rank = ranks_.rank();
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  copy_in(data_of(movement), values);
  const auto body = body_of(movement, count, way);
  // Run the movement once outside a CUDA graph capture, because ranks connect in their first
  // operation, and connecting is not possible in a capture.
  ranks_.barrier("bench");
  body({});
  copy_out(values, movement == Movement::send_receive ? received() : data_of(movement));
  bool right = true;
  for (std::int64_t i = 0; i < count; ++i) {
    float expected = value_of(movement == Movement::broadcast ? 0 : (rank + ranks - 1) % ranks, i);
    if (reduces(movement)) {
      expected = 0;
      for (int other = 0; other < ranks; ++other) expected += value_of(other, i);
    }
    right = right && values[i] == expected;
  }
  return ranks_.all_reduce(std::int32_t{right}, ReduceOp::min, "bench check") == 1;
}

double MeterBase::microseconds(Movement movement, std::int64_t bytes, Way way, int times) {
  const auto body = body_of(movement, bytes / static_cast<std::int64_t>(sizeof(float)), way);
  ranks_.barrier("bench");
  return ranks_.all_reduce(time(times, body), ReduceOp::max, "bench time");
}

double MeterBase::bucketed_microseconds(std::int64_t bytes, std::int64_t bucket, int times) {
  const auto count = bytes / static_cast<std::int64_t>(sizeof(float));
  const auto step = bucket / static_cast<std::int64_t>(sizeof(float));
  std::vector<std::shared_ptr<PreparedOperation>> operations;
  for (std::int64_t first = 0; first < count; first += step)
    operations.push_back(sum_of(gradients() + first, std::min(step, count - first)));
  ranks_.barrier("bench");
  const double mine = time(times, [&](Stream stream) {
    for (const auto& operation : operations) operation->start(stream);
    for (const auto& operation : operations) operation->wait(stream);
  });
  return ranks_.all_reduce(mine, ReduceOp::max, "bench time");
}

MeterBase::OverlapTimes MeterBase::side_by_side(std::int64_t bytes,
                                                const std::function<void(Stream)>& computation, int times) {
  const auto count = bytes / static_cast<std::int64_t>(sizeof(float));
  const auto operation = sum_of(gradients(), count);
  const auto slowest = [&](const std::function<void(Stream)>& body) {
    ranks_.barrier("bench");
    return ranks_.all_reduce(time(times, body), ReduceOp::max, "bench time");
  };
  const auto reduce = [&](Stream stream) { operation->start(stream), operation->wait(stream); };
  const auto both = [&](Stream stream) {
    operation->start(stream);
    computation(stream);
    operation->wait(stream);
  };
  return {slowest(reduce), slowest(computation), slowest(both)};
}

}  // namespace convoy::comm
