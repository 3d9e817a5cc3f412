#include "app/sharing/shared_device.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include "kernels/device/device_memory.h"
#include "kernels/device/errors.h"

namespace convoy::app {
namespace {

constexpr int kState = static_cast<int>(MemoryPart::state);
// A rate of copies between a device and host memory, by which the length of turns is chosen.
constexpr double kCopiedBytesPerMs = 40e6;
constexpr std::int64_t kMostStepsOfTurn = 256;
// The pieces of a step that a training may have launched while there are services.
constexpr std::size_t kPiecesAhead = 2;

// Ignores an error of the device.
template <typename Body>
void unless_failed(const Body& body) {
  try {
    body();
  } catch (const std::exception&) {
  }
}

std::int64_t free_memory(kernels::Backend backend) {
  if (backend == kernels::Backend::cuda) return kernels::free_gpu_memory() / 100 * 95;
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE) / 10 * 9;
}

}  // namespace

struct SharedDevice::Job {
  SharedJob traits;
  std::unique_ptr<DeviceGate> gate;
  MappedJob map;
  std::byte* base = nullptr;  // the start of the memory to which the offsets in `map` belong
  std::size_t arena = 0;
  bool starts_with_others = false, asked = false, ended = false;
  kernels::Arena host_state;  // has memory only if another job overwrites the state
  bool resident = false, fresh = true;
  std::exception_ptr failure;  // why the job got no memory
  DeviceQueue::Mark last, in, out;
  std::deque<DeviceQueue::Mark> flight;
  // The marks of other jobs for which this job's stream waits already, by job.
  std::vector<DeviceQueue::Mark> followed;
  int depth = 0;  // the nesting of enter(); only the job's thread uses it
  std::optional<DeviceGate::Use> waiting;
  bool inside = false, mid_step = false;
  bool expected = false;  // whether a service will start a step soon
  int group = 0, urgent = 0;
  std::int64_t turn_steps = 0;
  double step_ms = 0;
  Clock::time_point last_active{};
  Progress progress;

  std::byte* state() const { return base + map.offset[kState]; }
  std::size_t state_bytes() const { return static_cast<std::size_t>(map.need.bytes[kState]); }
};

class SharedDevice::Gate final : public DeviceGate {
 public:
  Gate(SharedDevice& device, int job, const SharedJob& traits)
      : device_(device), job_(job), service_(traits.service) {}
  MemoryPlace reserve(const MemoryNeed& need) override { return device_.reserve(job_, need); }
  void enter(Use use, const Piece&, kernels::Stream stream) override { device_.enter(job_, use, stream); }
  void leave(Use use, const Piece& piece, kernels::Stream stream) noexcept override {
    device_.leave(job_, use, piece, stream);
  }
  void expect_step(bool soon) noexcept override { device_.expect_step(job_, soon); }
  void finished(bool training) noexcept override { device_.finished(job_, training); }
  double longest_piece_ms() const override { return urgent() ? 0 : device_.options_.longest_piece_ms; }
  bool urgent() const override { return service_; }

 private:
  SharedDevice& device_;
  const int job_;
  const bool service_;
};

SharedDevice::SharedDevice(const SharingOptions& options)
    : options_(options), queue_(make_device_queue(options.backend)) {}

SharedDevice::~SharedDevice() = default;

int SharedDevice::add(const SharedJob& traits, bool starts_with_others) {
  const Lock lock(mutex_);
  const int number = static_cast<int>(jobs_.size());
  Job& job = *jobs_.emplace_back(std::make_unique<Job>());
  job.traits = traits;
  job.gate = std::make_unique<Gate>(*this, number, traits);
  job.map.name = traits.name;
  job.map.stays = traits.service;
  job.starts_with_others = starts_with_others;
  job.group = groups_++;
  job.last_active = Clock::now();
  find_conflicts();
  return number;
}

DeviceGate& SharedDevice::gate(int job) {
  const Lock lock(mutex_);
  return *at(job).gate;
}

void SharedDevice::end(int number) {
  Lock lock(mutex_);
  Job& job = at(number);
  // Copies of the state may be under way, and others get the memory next.
  for (const DeviceQueue::Mark& mark : {job.last, job.in, job.out})
    unless_failed([&] { queue_->wait(mark); });
  job.host_state = {};
  job.ended = job.progress.ended = true;
  job.map.placed = false, job.map.need = {};
  urgent_ -= std::exchange(job.urgent, 0) + (std::exchange(job.expected, false) ? 1 : 0);
  // An error may have ended the job anywhere.
  job.waiting.reset();
  job.inside = job.mid_step = false;
  if (alone_ == number) alone_ = -1;
  if (job.arena > 0) arenas_[job.arena] = {};
  find_conflicts();
  place_waiting();
  changed_.notify_all();
}

MemoryPlace SharedDevice::reserve(int number, const MemoryNeed& need) {
  Lock lock(mutex_);
  Job& job = at(number);
  if (job.map.placed) {
    // Members that have been halved make a smaller session in the same memory.
    if (!std::ranges::equal(need.bytes, job.map.need.bytes, std::less_equal<>()))
      throw std::logic_error("a second session of a job needs more memory than the first");
  } else {
    job.map.need = need;
  }
  job.asked = true;
  place_waiting();
  changed_.wait(lock, [&] { return job.map.placed || job.failure; });
  if (job.failure) std::rethrow_exception(job.failure);
  job.fresh = true, job.resident = false;
  job.progress.reserved = true;
  MemoryPlace place;
  for (int part = 0; part < kMemoryParts; ++part) place.start[part] = job.base + job.map.offset[part];
  return place;
}

// Places the memory of all jobs that have asked for it, once the jobs that start together have
// asked.
void SharedDevice::place_waiting() {
  const auto missing = [](const auto& job) { return job->starts_with_others && !job->asked && !job->ended; };
  if (!placed_first_ && std::ranges::any_of(jobs_, missing)) return;
  std::vector<Job*> asked;
  for (const auto& job : jobs_)
    if (job->asked && !job->ended && !job->map.placed && !job->failure) asked.push_back(job.get());
  while (!asked.empty()) {
    try {
      if (!placed_first_) reserve_first(asked);
      place(asked);
      placed_first_ = true;
      break;
    } catch (const DoesNotFit& error) {
      // The other jobs may fit without this one.
      const auto job =
          std::ranges::find_if(asked, [&](const Job* one) { return one->map.name == error.job; });
      (*job)->failure = std::current_exception();
      asked.erase(job);
    } catch (const std::exception&) {
      for (Job* job : asked) job->failure = std::current_exception();
      asked.clear();
    }
  }
  changed_.notify_all();
}

// Reserves the memory limit, or what the jobs that start together need.
void SharedDevice::reserve_first(const std::vector<Job*>& asked) {
  std::int64_t bytes = options_.memory_limit;
  if (bytes == 0) {
    for (const Job* job : asked) bytes += bytes_side_by_side({&job->map, 1});
    bytes = std::min(bytes, free_memory(options_.backend));
  }
  arenas_.clear();
  arenas_.emplace_back(options_.backend, static_cast<std::size_t>(bytes));
}

void SharedDevice::place(const std::vector<Job*>& asked) {
  const auto capacity = static_cast<std::int64_t>(arenas_[0].bytes());
  // A job that comes later has memory of its own if the device has enough.
  if (placed_first_ && options_.memory_limit == 0)
    for (Job* job : asked) {
      const std::int64_t bytes = bytes_side_by_side({&job->map, 1});
      if (job->map.placed || bytes > free_memory(options_.backend)) continue;
      arenas_.emplace_back(options_.backend, static_cast<std::size_t>(bytes));
      place_jobs(bytes, {&job->map, 1});
      job->arena = arenas_.size() - 1;
      job->base = arenas_.back().data();
    }
  std::vector<Job*> together;
  std::vector<MappedJob> maps;
  for (const auto& job : jobs_)
    if (!job->ended && !job->failure && job->asked && (!job->map.placed || job->arena == 0)) {
      together.push_back(job.get());
      maps.push_back(job->map);
    }
  place_jobs(capacity, maps);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    together[i]->map = maps[i];
    together[i]->base = arenas_[0].data();
  }
  find_conflicts();
  // Reserve the host memory of the states that have to wait there.
  for (std::size_t a = 0; a < jobs_.size(); ++a)
    for (std::size_t b = 0; b < jobs_.size(); ++b) {
      Job& job = *jobs_[a];
      if (a != b && overwrites(b, a) && job.host_state.bytes() < job.state_bytes())
        job.host_state = kernels::Arena::for_copies(options_.backend, job.state_bytes());
    }
}

bool SharedDevice::overwrites(std::size_t other, std::size_t job) const {
  const Job &a = *jobs_[other], &b = *jobs_[job];
  return a.map.placed && b.map.placed && a.arena == b.arena && overwrites_state(a.map, b.map);
}

std::size_t SharedDevice::index_of(const Job& job) const {
  return static_cast<std::size_t>(
      std::ranges::find_if(jobs_, [&](const auto& one) { return one.get() == &job; }) - jobs_.begin());
}

bool SharedDevice::swaps() const {
  const Lock lock(mutex_);
  for (std::size_t a = 0; a < jobs_.size(); ++a)
    for (std::size_t b = 0; b < jobs_.size(); ++b)
      if (a != b && overwrites(a, b)) return true;
  return false;
}

bool SharedDevice::states_overlap(std::size_t a, std::size_t b) const {
  const Job &first = *jobs_[a], &second = *jobs_[b];
  return overwrites(a, b) && first.state() < second.state() + second.state_bytes() &&
         second.state() < first.state() + first.state_bytes();
}

void SharedDevice::find_conflicts() {
  conflicts_.assign(jobs_.size(), std::vector<char>(jobs_.size(), 0));
  for (std::size_t a = 0; a < jobs_.size(); ++a) {
    jobs_[a]->followed.resize(jobs_.size());
    for (std::size_t b = 0; b < jobs_.size(); ++b)
      conflicts_[a][b] = a != b && jobs_[a]->map.placed && jobs_[b]->map.placed &&
                         jobs_[a]->arena == jobs_[b]->arena &&
                         app::share_memory(jobs_[a]->map, jobs_[b]->map);
  }
}

void SharedDevice::arrange(const Groups& groups) {
  const Lock lock(mutex_);
  for (const auto& job : jobs_) job->group = groups_++;
  for (const std::vector<int>& group : groups)
    for (const int job : group) {
      for (const int other : group)
        if (conflict(job, other)) throw std::logic_error("jobs that run side by side share memory");
      at(job).group = at(group[0]).group;
    }
  turn_ = -1;
  changed_.notify_all();
}

void SharedDevice::focus(std::optional<std::vector<int>> jobs) {
  const Lock lock(mutex_);
  focus_ = std::move(jobs);
  changed_.notify_all();
}

bool SharedDevice::share_memory(int a, int b) const {
  const Lock lock(mutex_);
  return conflict(a, b);
}

SharedDevice::Progress SharedDevice::progress(int job) const {
  const Lock lock(mutex_);
  return at(job).progress;
}

void SharedDevice::set_step_ms(int job, double milliseconds) {
  const Lock lock(mutex_);
  at(job).step_ms = milliseconds;
}

std::int64_t SharedDevice::steps_of_turn(int job) const {
  const Lock lock(mutex_);
  return steps_of_turn(at(job));
}

std::int64_t SharedDevice::memory_bytes() const {
  const Lock lock(mutex_);
  std::int64_t sum = 0;
  for (const kernels::Arena& arena : arenas_) sum += static_cast<std::int64_t>(arena.bytes());
  return sum;
}

void SharedDevice::enter(int number, DeviceGate::Use use, kernels::Stream stream) {
  Lock lock(mutex_);
  Job& job = at(number);
  if (job.depth++ > 0) return;
  if (use == DeviceGate::Use::step) throttle(job, lock);
  if (use == DeviceGate::Use::step && job.traits.service) ++urgent_, ++job.urgent;
  job.waiting = use;
  // The time limit lets a waiting job see that a group has become idle.
  while (!admits(number, use)) changed_.wait_for(lock, options_.idle);
  job.waiting.reset();
  job.inside = true;
  if (use == DeviceGate::Use::alone) alone_ = number;
  evict_for(number, false);
  bring_state(number);
  if (std::exchange(turn_began_, false) && options_.prefetch) prefetch_next();
  const std::vector<DeviceQueue::Mark> marks = marks_before(number);
  if (use == DeviceGate::Use::step) {
    for (const DeviceQueue::Mark& mark : marks) queue_->order(stream, mark);
    return;
  }
  // Nobody else enters with memory in common, so wait without the lock.
  lock.unlock();
  for (const DeviceQueue::Mark& mark : marks) queue_->wait(mark);
  if (use == DeviceGate::Use::alone) queue_->synchronize();
}

// Never throws. If the device has failed, the job says so when it waits for its step.
void SharedDevice::leave(int number, DeviceGate::Use use, const DeviceGate::Piece& piece,
                         kernels::Stream stream) noexcept {
  Lock lock(mutex_);
  Job& job = at(number);
  if (--job.depth > 0) return;
  if (use == DeviceGate::Use::alone) {
    lock.unlock();
    unless_failed([&] { queue_->synchronize(); });
    lock.lock();
  }
  if (use == DeviceGate::Use::step) {
    unless_failed([&] { job.flight.push_back(job.last = queue_->mark(stream)); });
    forget_reached(job);
    job.mid_step = !piece.last;
    if (piece.last) ++job.turn_steps;
  }
  if (alone_ == number) alone_ = -1;
  job.inside = false;
  job.last_active = Clock::now();
  changed_.notify_all();
}

// Removes the marks of the pieces that have ended.
void SharedDevice::forget_reached(Job& job) {
  unless_failed([&] {
    while (!job.flight.empty() && queue_->reached(job.flight.front())) job.flight.pop_front();
  });
}

void SharedDevice::expect_step(int number, bool soon) {
  const Lock lock(mutex_);
  Job& job = at(number);
  if (job.expected == soon) return;
  job.expected = soon;
  urgent_ += soon ? 1 : -1;
  changed_.notify_all();
}

void SharedDevice::finished(int number, bool training) {
  const Lock lock(mutex_);
  Job& job = at(number);
  ++(training ? job.progress.steps : job.progress.evaluated_batches);
  job.progress.worked_until = Clock::now();
  if (training) job.progress.finished_at = job.progress.worked_until;
  if (job.urgent > 0) --job.urgent, --urgent_;
  changed_.notify_all();
}

// Lets a training have only a few pieces in flight while there are services, since a service waits
// for them.
void SharedDevice::throttle(Job& job, Lock& lock) {
  const auto serves = [](const auto& other) { return other->traits.service && !other->ended; };
  if (job.traits.service || std::ranges::none_of(jobs_, serves)) return;
  for (;;) {
    forget_reached(job);
    if (job.flight.size() < kPiecesAhead) return;
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

// Returns whether the job may enter now.
bool SharedDevice::admits(int number, DeviceGate::Use use) {
  using Use = DeviceGate::Use;
  Job& job = at(number);
  if (alone_ >= 0) return false;
  const auto waits_alone = [&](const auto& other) {
    return other.get() != &job && other->waiting == Use::alone;
  };
  if (use == Use::alone) {
    const auto busy = [](const auto& other) { return other->inside || other->mid_step; };
    return std::ranges::none_of(jobs_, busy);
  }
  // A job that waits to be alone needs begun steps to end, whatever a service expects.
  if (std::ranges::any_of(jobs_, waits_alone)) return job.mid_step;
  for (int other = 0; other < static_cast<int>(jobs_.size()); ++other)
    if (conflict(number, other) && (at(other).inside || at(other).mid_step)) return false;
  if (job.traits.service || use == Use::memory) return true;
  if (options_.hold && urgent_ > 0) return false;
  return job.mid_step || has_turn(job);
}

bool SharedDevice::has_turn(const Job& job) {
  if (left_out(job)) return false;
  if (turn_is_over()) {
    const int next = next_group();
    if (next != job.group) return false;
    start_turn(next);
  }
  return turn_ == job.group;
}

// Returns whether another group may have its turn: a job of higher priority waits, or a job of the
// same priority waits and all jobs of the current group have done their steps, or all jobs of the
// current group launch nothing.
bool SharedDevice::turn_is_over() {
  if (turn_ < 0) return true;
  const Clock::time_point now = Clock::now();
  int highest = std::numeric_limits<int>::min(), own = highest;
  for (const auto& job : jobs_) {
    if (job->ended || job->traits.service || left_out(*job)) continue;
    if (job->group == turn_) {
      own = std::max(own, job->traits.priority);
      if (job->inside || job->mid_step) return false;
    } else if (job->waiting == DeviceGate::Use::step) {
      highest = std::max(highest, job->traits.priority);
    }
  }
  if (highest > own) return true;
  for (const auto& job : jobs_) {
    if (job->ended || job->traits.service || job->group != turn_ || left_out(*job)) continue;
    if (highest == own && job->turn_steps >= steps_of_turn(*job)) continue;
    forget_reached(*job);
    const bool idle = !job->waiting && job->flight.empty() && now - job->last_active > options_.idle;
    if (!idle) return false;
  }
  return true;
}

bool SharedDevice::left_out(const Job& job) const {
  return focus_ && std::ranges::none_of(*focus_, [&](int one) { return &at(one) == &job; });
}

// Returns the group whose turn is next: of the groups that wait with the highest priority, the one
// that follows the current group.
int SharedDevice::next_group() const {
  int highest = std::numeric_limits<int>::min();
  const auto waits = [&](const Job& job) {
    return !job.ended && !job.traits.service && job.waiting == DeviceGate::Use::step && !left_out(job);
  };
  for (const auto& job : jobs_)
    if (waits(*job)) highest = std::max(highest, job->traits.priority);
  int next = -1;
  for (const auto& job : jobs_) {
    if (!waits(*job) || job->traits.priority < highest) continue;
    if (next < 0 || distance(job->group) < distance(next)) next = job->group;
  }
  return next;
}

void SharedDevice::start_turn(int group) {
  turn_ = group;
  for (const auto& job : jobs_) job->turn_steps = 0;
  turn_began_ = true;
}

// Begins to copy in the states of the group that comes next, as far as the current group leaves
// their memory free.
void SharedDevice::prefetch_next() {
  int next = -1;
  for (const auto& job : jobs_)
    if (!job->ended && job->map.placed && !job->traits.service && job->group != turn_ && !left_out(*job) &&
        (next < 0 || distance(job->group) < distance(next)))
      next = job->group;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = *jobs_[i];
    if (job.ended || job.group != next || job.resident || job.fresh || job.inside) continue;
    bool free = true;
    for (std::size_t other = 0; other < jobs_.size(); ++other) {
      const Job& its = *jobs_[other];
      if (other == i || !overwrites(other, i)) continue;
      free = free && its.group != turn_ && !its.inside && !its.mid_step;
    }
    if (free) bring_state(static_cast<int>(i));
  }
}

// A turn lasts as long as the copies that it causes. If they cannot run during other jobs' steps,
// it lasts so much longer that they take little of the time.
std::int64_t SharedDevice::steps_of_turn(const Job& job) const {
  constexpr double kExposed = 8;
  double ms = 0;
  for (std::size_t other = 0; other < jobs_.size(); ++other) {
    const Job& its = *jobs_[other];
    const std::size_t own = index_of(job);
    if (other == own || its.ended) continue;
    const double copies = 2 * static_cast<double>(its.state_bytes() + job.state_bytes()) / kCopiedBytesPerMs;
    if (overwrites(own, other))
      ms = std::max(ms, kExposed * copies);
    else if (overwrites(other, own))
      ms = std::max(ms, copies);
  }
  const double step_ms = job.step_ms > 0 ? job.step_ms : 10;
  return std::clamp<std::int64_t>(std::llround(std::ceil(ms / step_ms)), 1, kMostStepsOfTurn);
}

void SharedDevice::evict(std::size_t number) {
  Job& job = *jobs_[number];
  if (!job.resident) return;
  const DeviceQueue::Mark after[] = {job.last, job.in};
  job.out = queue_->copy(DeviceQueue::Direction::to_host, job.host_state.data(), job.state(),
                         job.state_bytes(), after);
  job.progress.swapped_bytes += static_cast<std::int64_t>(job.state_bytes());
  job.resident = false;
}

// Copies the states out that the job overwrites, or only those that its own state overwrites.
void SharedDevice::evict_for(int number, bool only_state) {
  const auto index = static_cast<std::size_t>(number);
  for (std::size_t other = 0; other < jobs_.size(); ++other) {
    if (other == index || jobs_[other]->ended) continue;
    if (only_state ? states_overlap(index, other) : overwrites(index, other)) evict(other);
  }
}

// Copies the job's state in if it is not on the device. The memory of a new job begins with zeros.
void SharedDevice::bring_state(int number) {
  Job& job = at(number);
  if (job.resident || !job.map.placed) return;
  evict_for(number, true);
  std::vector<DeviceQueue::Mark> after = marks_of_conflicts(number);
  after.push_back(job.out);
  if (job.fresh) {
    for (const DeviceQueue::Mark& mark : after) queue_->wait(mark);
    for (const int part : {static_cast<int>(MemoryPart::inputs), kState})
      kernels::clear(options_.backend, job.base + job.map.offset[part],
                     static_cast<std::size_t>(job.map.need.bytes[part]), {});
    queue_->synchronize();
  } else {
    job.in = queue_->copy(DeviceQueue::Direction::to_device, job.state(), job.host_state.data(),
                          job.state_bytes(), after);
    job.progress.swapped_bytes += static_cast<std::int64_t>(job.state_bytes());
  }
  job.fresh = false, job.resident = true;
}

// Returns the marks that must be reached before the job may write to its memory.
std::vector<DeviceQueue::Mark> SharedDevice::marks_of_conflicts(int number) const {
  std::vector<DeviceQueue::Mark> marks;
  for (int other = 0; other < static_cast<int>(jobs_.size()); ++other)
    if (conflict(number, other)) marks.push_back(at(other).last), marks.push_back(at(other).out);
  return marks;
}

// Returns the marks for which the job's next work must wait and for which it does not wait yet. The
// groups take turns on the device, too, so a job waits for the work of the other groups.
std::vector<DeviceQueue::Mark> SharedDevice::marks_before(int number) {
  Job& job = at(number);
  std::vector<DeviceQueue::Mark> marks;
  for (int other = 0; other < static_cast<int>(jobs_.size()); ++other) {
    const Job& its = at(other);
    if (other == number) continue;
    const bool in_turn = !its.traits.service && !job.traits.service && its.group != job.group;
    if (!conflict(number, other) && !in_turn) continue;
    DeviceQueue::Mark& followed = job.followed[static_cast<std::size_t>(other)];
    if (its.last == followed && !conflict(number, other)) continue;
    followed = its.last;
    marks.push_back(its.last);
    if (conflict(number, other)) marks.push_back(its.out);
  }
  if (job.in) marks.push_back(std::exchange(job.in, nullptr));
  return marks;
}

}  // namespace convoy::app
