// Initialises MPI, checks that MPI and the launcher's variables agree, starts the watchdog, and
// finalises MPI in the destructor.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/placement/local_device.h"
#include "comm/watchdog/watchdog.h"

namespace convoy::comm {

class MpiEnvironment {
 public:
  // `timeout` limits each blocking wait for other ranks (--timeout); zero means no limit. `device`
  // (from take_local_device) is shown in messages. Throws std::runtime_error if the launcher
  // started several processes but MPI sees only this one. The program may set its handler for
  // SIGTERM before or after this call. With several ranks, the watchdog's thread runs the handler.
  explicit MpiEnvironment(std::chrono::milliseconds timeout = std::chrono::minutes(5),
                          LocalDevice device = {});
  // Finalises MPI. While an exception unwinds the stack, it does not wait for the other ranks but
  // makes them end without a message. The code that catches the exception must print its message
  // and exit.
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  const Communicator& world() const { return *world_; }
  const LocalDevice& device() const { return device_; }
  // Returns for example "rank 1 (host node7, cuda:1, pid 4711)", for messages about this rank
  // alone.
  std::string identity() const;

  // Sets the step that the watchdog's messages show.
  void set_step(std::int64_t step) { context_->waits.set_step(step); }

 private:
  class Runtime;
  LocalDevice device_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<CommContext> context_;
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Watchdog> watchdog_;  // null for a single rank
};

}  // namespace convoy::comm
