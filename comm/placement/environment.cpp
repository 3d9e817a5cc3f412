#include "comm/placement/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <stdexcept>
#include <utility>

#include "comm/mpi_check.h"
#include "comm/placement/launcher.h"
#include "comm/watchdog/watchdog_socket.h"

namespace convoy::comm {
namespace {

constexpr std::uint64_t kWorldKey = 1;

void check_world_size() {
  const auto hint = launcher_hint();
  int size = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (hint && hint->world_size > 1 && size == 1)
    throw std::runtime_error(fmt::format(
        "the launcher started {} processes ({}={}) but MPI sees one: start Convoy with the mpirun (or srun "
        "--mpi=…) of the MPI that it is built with, here {}",
        hint->world_size, hint->variable, hint->world_size, mpi_library()));
}

}  // namespace

// Initialises and finalises MPI. Only one thread of a rank calls MPI at a time, so
// MPI_THREAD_SERIALIZED is enough, without the locks that MPI_THREAD_MULTIPLE takes in every call.
class MpiEnvironment::Runtime {
 public:
  Runtime() {
    // If a rank has died, a message to it must fail but not end this process by SIGPIPE, because
    // this process has to name the dead rank.
    std::signal(SIGPIPE, SIG_IGN);
    int provided = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (provided < MPI_THREAD_SERIALIZED)
      throw std::runtime_error(
          fmt::format("MPI gives thread level {}, expected at least MPI_THREAD_SERIALIZED ({})", provided,
                      int{MPI_THREAD_SERIALIZED}));
  }
  ~Runtime() {
    // MPI_Finalize waits for the other ranks. Skip it while an exception unwinds the stack.
    if (std::uncaught_exceptions() == 0) MPI_Finalize();
  }
};

MpiEnvironment::MpiEnvironment(std::chrono::milliseconds timeout, LocalDevice device)
    : device_(std::move(device)),
      runtime_(std::make_unique<Runtime>()),
      context_(std::make_shared<CommContext>()) {
  check_world_size();
  MPI_Comm world = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world), "MPI_Comm_dup");
  world_ = std::make_unique<Communicator>(world, context_, "world", kWorldKey);
  if (world_->size() == 1) return;
  WatchdogOptions options;
  options.timeout = timeout;
  WatchdogSocket channel = open_watchdog_socket(*world_, timeout, device_.short_name());
  watchdog_ = std::make_unique<Watchdog>(context_->waits, std::move(channel), options);
}

std::string MpiEnvironment::identity() const {
  return RankIdentity{world_->rank(), world_->host_name(), ::getpid(), device_.short_name()}.to_string();
}

MpiEnvironment::~MpiEnvironment() {
  if (std::uncaught_exceptions() > 0) {
    if (watchdog_) watchdog_->abandon();
    return;
  }
  const OperationName name("MPI_Finalize");
  const int channel = world_->channel();
  world_.reset();
  const WaitScope wait(context_->waits, channel, context_->waits.enter(channel, name), name);
  runtime_.reset();
  watchdog_.reset();
}

}  // namespace convoy::comm
