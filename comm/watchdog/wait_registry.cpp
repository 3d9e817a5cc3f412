#include "comm/watchdog/wait_registry.h"

#include <algorithm>
#include <stdexcept>

namespace convoy::comm {

OperationName::OperationName(std::string_view operation, std::string_view label) {
  const auto append = [this](std::string_view text) {
    const std::size_t fits = std::min(text.size(), text_.size() - length_);
    std::copy_n(text.data(), fits, text_.data() + length_);
    length_ = static_cast<std::uint16_t>(length_ + fits);
  };
  append(operation);
  if (!label.empty()) append(" ");
  append(label);
}

WaitRegistry::WaitRegistry() = default;

int WaitRegistry::open_channel(std::uint64_t key, std::vector<int> members) {
  const std::lock_guard lock(mutex_);
  for (std::size_t index = 0; index < channels_.size(); ++index)
    if (channels_[index].key == key) return static_cast<int>(index);
  channels_.push_back({key, std::move(members), 0});
  return static_cast<int>(channels_.size()) - 1;
}

std::uint64_t WaitRegistry::enter(int channel, const OperationName& name) {
  const std::lock_guard lock(mutex_);
  last_ = name;
  return ++channels_[channel].entered;
}

int WaitRegistry::begin_wait(int channel, std::uint64_t sequence, const OperationName& name) {
  const std::lock_guard lock(mutex_);
  const auto free = std::find_if(waits_.begin(), waits_.end(), [](const Wait& w) { return !w.active; });
  if (free == waits_.end())
    throw std::logic_error("more threads wait in collectives than the watchdog holds");
  *free = {true, channel, sequence, name, Clock::now()};
  return static_cast<int>(free - waits_.begin());
}

void WaitRegistry::end_wait(int token) {
  const std::lock_guard lock(mutex_);
  waits_[token].active = false;
}

void WaitRegistry::set_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

void WaitRegistry::attach(int channel, const DeviceOperations& operations) {
  const std::lock_guard lock(mutex_);
  Device device{.operations = &operations, .wait = {}};
  device.wait.channel = channel;
  devices_.push_back(device);
}

void WaitRegistry::detach(const DeviceOperations& operations) {
  const std::lock_guard lock(mutex_);
  std::erase_if(devices_, [&](const Device& device) { return device.operations == &operations; });
}

std::optional<std::string> WaitRegistry::look_at_devices(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::optional<std::string> failed;
  // Find the operation that a device has begun last, among all devices. It becomes last_, and
  // `latest` is the time when it began.
  std::uint64_t latest = 0;
  for (auto& [operations, wait] : devices_) {
    const DeviceOperations::Progress progress = operations->progress();
    Channel& channel = channels_[wait.channel];
    const bool moved = progress.entered != channel.entered;
    channel.entered = progress.entered;
    if (moved && progress.since >= latest) last_ = progress.current, latest = progress.since;
    const bool active = progress.entered > progress.finished;
    // The device may have finished many operations since the previous call. So the wait for the
    // current operation counts from the first call that finds the device in it.
    if (active && (moved || !wait.active)) wait.since = now;
    wait.active = active;
    wait.sequence = progress.entered;
    wait.name = progress.current;
    if (failure_told_) continue;
    if (const std::string text = operations->failure(); !text.empty()) {
      failed = text;
      failure_told_ = true;
    }
  }
  return failed;
}

const WaitRegistry::Wait* WaitRegistry::longest() const {
  const Wait* found = nullptr;
  const auto consider = [&found](const Wait& wait) {
    if (wait.active && (found == nullptr || wait.since < found->since)) found = &wait;
  };
  for (const Wait& wait : waits_) consider(wait);
  for (const Device& device : devices_) consider(device.wait);
  return found;
}

std::optional<OverdueWait> WaitRegistry::overdue(Clock::time_point now, Clock::duration limit) const {
  const std::lock_guard lock(mutex_);
  const Wait* wait = longest();
  if (wait == nullptr || now - wait->since < limit) return std::nullopt;
  const Channel& channel = channels_[wait->channel];
  return OverdueWait{channel.key, wait->sequence, std::string(wait->name.view()), step_, channel.members};
}

RankState WaitRegistry::state(std::uint64_t channel_key, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  RankState state{.step = step_, .waiting_in = {}, .last_operation = std::string(last_.view())};
  for (const Channel& channel : channels_)
    if (channel.key == channel_key) state.entered = channel.entered;
  if (const Wait* wait = longest()) {
    state.waiting_in = wait->name.view();
    state.waiting_seconds = std::chrono::duration<double>(now - wait->since).count();
  }
  return state;
}

void WaitRegistry::forgive(Clock::duration stopped) {
  const std::lock_guard lock(mutex_);
  for (Wait& wait : waits_) wait.since += stopped;
  for (Device& device : devices_) device.wait.since += stopped;
}

}  // namespace convoy::comm
