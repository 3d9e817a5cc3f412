// MPI for as long as this object lives: initialised, checked against what the launcher said, watched, and
// finalised.
#pragma once

#include <chrono>
#include <memory>

#include "comm/communicator.h"

namespace convoy::comm {

class MpiEnvironment {
 public:
  // Throws std::runtime_error when the launcher started several processes but MPI sees this one alone.
  explicit MpiEnvironment(std::chrono::milliseconds timeout = std::chrono::minutes(5));
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  const Communicator& world() const { return *world_; }
  // Shown in the watchdog's messages.
  void set_step(std::int64_t step) { context_->waits.set_step(step); }

 private:
  class Session;
  std::unique_ptr<Session> session_;
  std::shared_ptr<CommContext> context_;
  std::unique_ptr<Communicator> world_;
};

}  // namespace convoy::comm
