// The code that the meters of host and device memory have in common. It fills buffers, checks
// results, and reduces gradients in buckets. Internal to comm.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "comm/benchmark/measure.h"
#include "comm/communicator.h"

namespace convoy::comm {

class MeterBase : public CollectivesMeter {
 public:
  Collectives& collectives() override { return *collectives_; }
  bool correct(Movement movement, std::int64_t bytes, Way way) override;
  double microseconds(Movement movement, std::int64_t bytes, Way way, int times) override;
  double bucketed_microseconds(std::int64_t bytes, std::int64_t bucket, int times) override;
  OverlapTimes side_by_side(std::int64_t bytes, const std::function<void(Stream)>& computation,
                            int times) override;

 protected:
  MeterBase(const Communicator& ranks, std::unique_ptr<Collectives> collectives)
      : ranks_(ranks), collectives_(std::move(collectives)) {}

  virtual float* buffer() = 0;  // the data that is reduced, broadcast or sent
  virtual float* gradients() = 0;
  virtual float* received() = 0;  // where send_receive stores the data
  virtual void copy_in(float* to, const std::vector<float>& from) = 0;
  virtual void copy_out(std::vector<float>& to, const float* from) = 0;
  virtual void call_library(Movement movement, std::int64_t count, Stream stream) = 0;
  // Calls body(stream) `times` times in a row. Returns the microseconds of one call.
  virtual double time(int times, const std::function<void(Stream)>& body) = 0;

  // Destroys the prepared all-reduces. Call this before their memory is freed. Freeing waits for
  // the device, and the device may be waiting for another rank; only these destructors end that
  // wait.
  void forget_sums() { sums_.clear(); }
  float* data_of(Movement movement) { return movement == Movement::gradients ? gradients() : buffer(); }

  const Communicator& ranks_;
  std::unique_ptr<Collectives> collectives_;

 private:
  std::shared_ptr<PreparedOperation> sum_of(float* data, std::int64_t count);
  std::function<void(Stream)> body_of(Movement movement, std::int64_t count, Way way);

  std::map<std::pair<float*, std::int64_t>, std::shared_ptr<PreparedOperation>> sums_;
};

}  // namespace convoy::comm
