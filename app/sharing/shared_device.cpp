#include "app/sharing/shared_device.h"

#include <exception>
#include <thread>

namespace convoy::app {
namespace {

// The most pieces of steps (step_pieces.h) that a training may have launched and not finished while
// there are services.
constexpr std::size_t kPiecesAhead = 2;

}  // namespace

class SharedDevice::Gate final : public DeviceGate {
 public:
  Gate(SharedDevice& device, int job, bool service, const kernels::MultiprocessorPart* part)
      : device_(device), job_(job), service_(service), part_(part) {}
  MemoryPlace reserve(const MemoryNeed& need) override { return device_.reserve(job_, need); }
  void enter(Use use, const Piece& piece, kernels::Stream stream) override {
    device_.enter(job_, use, piece, stream);
  }
  void leave(Use use, const Piece& piece, kernels::Stream stream) noexcept override {
    device_.leave(job_, use, piece, stream);
  }
  void expect_step(bool soon) noexcept override { device_.expect_step(job_, soon); }
  void finished(bool training) noexcept override { device_.finished(job_, training); }
  double longest_piece_ms() const override { return device_.longest_piece_ms(job_); }
  bool urgent() const override { return service_; }
  const kernels::MultiprocessorPart* multiprocessors() const override { return part_; }

 private:
  SharedDevice& device_;
  const int job_;
  const bool service_;
  const kernels::MultiprocessorPart* const part_;
};

SharedDevice::SharedDevice(const SharingOptions& options)
    : SharedDevice(options, make_device_queue(options.backend)) {}

SharedDevice::SharedDevice(const SharingOptions& options, std::unique_ptr<DeviceQueue> queue)
    : options_(options),
      queue_(std::move(queue)),
      memory_(options.backend, options.memory_limit),
      copies_(options.backend, *queue_, memory_, options.least_group_bytes),
      turns_(options_, memory_, copies_) {
  if (options_.multiprocessors > 0) parts_ = kernels::divide_multiprocessors(options_.multiprocessors);
}

SharedDevice::~SharedDevice() = default;

int SharedDevice::add(const SharedJob& traits, bool starts_with_others) {
  const Lock lock(mutex_);
  const int number = static_cast<int>(jobs_.size());
  jobs_.emplace_back().gate = std::make_unique<Gate>(*this, number, traits.service,
                                                     !parts_                      ? nullptr
                                                     : traits.own_multiprocessors ? &parts_->first
                                                                                  : &parts_->rest);
  memory_.add(traits.name, traits.service, starts_with_others);
  copies_.add();
  turns_.add(traits);
  return number;
}

DeviceGate& SharedDevice::gate(int job) {
  const Lock lock(mutex_);
  return *at(job).gate;
}

void SharedDevice::end(int job) {
  const Lock lock(mutex_);
  // Wait for copies of the job's state and for its work, because other jobs get its memory next.
  copies_.wait_for(job);
  at(job).progress.ended = true;
  at(job).progress.worked_until = Clock::now();
  turns_.end(job);
  memory_.end(job);
  changed_.notify_all();
}

MemoryPlace SharedDevice::reserve(int job, const MemoryNeed& need) {
  Lock lock(mutex_);
  memory_.ask(job, need);
  changed_.notify_all();
  changed_.wait(lock, [&] { return memory_.placed(job) || memory_.failure(job); });
  if (memory_.failure(job)) std::rethrow_exception(memory_.failure(job));
  copies_.begin_session(job);
  turns_.begin_job();
  at(job).progress.reserved = true;
  MemoryPlace place;
  for (int part = 0; part < kMemoryParts; ++part)
    place.start[part] = memory_.part(job, static_cast<MemoryPart>(part)).data();
  return place;
}

bool SharedDevice::swaps() const {
  const Lock lock(mutex_);
  return memory_.any_state_waits();
}

void SharedDevice::arrange(const Groups& groups) {
  const Lock lock(mutex_);
  turns_.arrange(groups);
  changed_.notify_all();
}

void SharedDevice::focus(std::optional<std::vector<int>> jobs) {
  const Lock lock(mutex_);
  turns_.focus(std::move(jobs));
  changed_.notify_all();
}

bool SharedDevice::share_memory(int a, int b) const {
  const Lock lock(mutex_);
  return memory_.conflict(a, b);
}

SharedDevice::Progress SharedDevice::progress(int job) const {
  const Lock lock(mutex_);
  Progress progress = at(job).progress;
  progress.swapped_bytes = copies_.copied_bytes(job);
  return progress;
}

void SharedDevice::set_turn_factor(int job, double factor) {
  const Lock lock(mutex_);
  turns_.set_turn_factor(job, factor);
}

void SharedDevice::set_step_ms(int job, double milliseconds) {
  const Lock lock(mutex_);
  turns_.set_step_ms(job, milliseconds);
}

std::int64_t SharedDevice::steps_of_turn(int job) const {
  const Lock lock(mutex_);
  return turns_.steps_of_turn(job);
}

std::int64_t SharedDevice::memory_bytes() const {
  const Lock lock(mutex_);
  return memory_.bytes();
}

void SharedDevice::enter(int job, DeviceGate::Use use, const DeviceGate::Piece& piece,
                         kernels::Stream stream) {
  Lock lock(mutex_);
  if (at(job).depth++ > 0) return;
  if (use == DeviceGate::Use::step) throttle(job, lock);
  turns_.wait(job, use);
  // Nobody notifies this thread when a group has become idle and so loses its turn. So ask again
  // after options_.idle.
  while (!turns_.admits(job, use)) changed_.wait_for(lock, options_.idle);
  turns_.enter(job, use);
  copies_.make_room(job);
  copies_.bring_state(job);
  prefetch_next();
  const bool step = use == DeviceGate::Use::step;
  const auto marks = copies_.marks_before(
      job, [&](int other) { return turns_.take_turns(job, other); }, step ? piece.first_used : nullptr);
  // The steps of a service only read its state.
  if (!step || !turns_.serves(job)) copies_.changes_state(job);
  if (step) {
    for (const DeviceQueue::Mark& mark : marks) queue_->order(stream, mark);
    return;
  }
  // No other job with memory in common can enter meanwhile, so wait without the lock.
  lock.unlock();
  for (const DeviceQueue::Mark& mark : marks) queue_->wait(mark);
  if (use == DeviceGate::Use::alone) queue_->synchronize();
}

// Ignores errors of the device. The job reports them when it waits for its step.
void SharedDevice::leave(int job, DeviceGate::Use use, const DeviceGate::Piece& piece,
                         kernels::Stream stream) noexcept {
  Lock lock(mutex_);
  if (--at(job).depth > 0) return;
  if (use == DeviceGate::Use::alone) {
    lock.unlock();
    unless_failed([&] { queue_->synchronize(); });
    lock.lock();
  }
  if (use == DeviceGate::Use::step) copies_.launched(job, stream, piece);
  turns_.leave(job, use, piece);
  changed_.notify_all();
}

void SharedDevice::expect_step(int job, bool soon) {
  const Lock lock(mutex_);
  turns_.expect_step(job, soon);
  changed_.notify_all();
}

void SharedDevice::finished(int number, bool training) {
  const Lock lock(mutex_);
  Progress& progress = at(number).progress;
  ++(training ? progress.steps : progress.evaluated_batches);
  progress.worked_until = Clock::now();
  if (training) progress.finished_at = progress.worked_until;
  turns_.finished(number);
  changed_.notify_all();
}

// The steps of a service are divided into pieces only if the service's state may be in host memory.
// Each piece then waits only for the part of the state that it uses. The pieces are shorter than
// those of a training, because the steps are shorter. 0 means that steps are not divided.
double SharedDevice::longest_piece_ms(int job) const {
  constexpr double kServicePieceMs = 0.25;
  const Lock lock(mutex_);
  if (!turns_.serves(job)) return options_.longest_piece_ms;
  return memory_.host_state(job) != nullptr ? kServicePieceMs : 0;
}

// While there are services, lets a training have only a few unfinished pieces on the device,
// because a service must wait for them. A service with multiprocessors of its own waits, too, if
// the driver puts its work and that of a training into one hardware queue.
void SharedDevice::throttle(int job, Lock& lock) {
  if (turns_.serves(job)) return;
  while (turns_.any_service() && copies_.in_flight(job) >= kPiecesAhead) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

// Begins to copy to the device the states of the jobs whose turn comes next, if no current work
// uses their place there.
void SharedDevice::prefetch_next() {
  for (const int next : turns_.take_next_jobs())
    if (options_.prefetch && copies_.waits_in_host_memory(next)) copies_.bring_state(next);
}

}  // namespace convoy::app
