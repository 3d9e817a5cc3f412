#include "comm/watchdog/watchdog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "comm/watchdog/host_election.h"
#include "comm/watchdog/terminate_signal.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;

// mpirun sends SIGTERM to all processes milliseconds after one of them dies. So each process holds
// SIGTERM back for kTerminateHeld; if no death has ended the job by then, SIGTERM was meant for the
// process itself and ends it. A connection that closes later than kDeathsAfterTerminate after
// SIGTERM does not count as a death, because SIGTERM has then ended its process, too.
constexpr milliseconds kTerminateHeld{300}, kDeathsAfterTerminate{200};
constexpr milliseconds kFollow{500}, kGoodbye{2000};
// The exit status of a process that the watchdog ends by std::quick_exit. That function lets
// handlers remove half-written files and does not wait for threads.
constexpr int kFailed = 1;

sigset_t all_signals() {
  sigset_t all;
  sigfillset(&all);
  return all;
}

}  // namespace

Watchdog::Watchdog(WaitRegistry& waits, WatchdogSocket channel, WatchdogOptions options)
    : waits_(waits),
      channel_(std::move(channel)),
      connected_(channel_.link.open()),
      options_(options),
      last_look_(Clock::now()) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::runtime_error("watchdog: cannot make a pipe");
  wake_read_ = UniqueFd(ends[0]);
  wake_write_ = UniqueFd(ends[1]);
  if (connected_) TerminateSignal::hold(wake_write_.get());
  // The watchdog's thread starts with all signals blocked. It then unblocks only SIGTERM.
  const BlockedSignals all(all_signals());
  thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  request_ = Request::stop;
  wake();
  thread_.join();
  TerminateSignal::release();
}

void Watchdog::wake() {
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(wake_write_.get(), &byte, 1);
}

milliseconds Watchdog::tick() const {
  const milliseconds calm = options_.timeout.count() == 0
                                ? milliseconds(500)
                                : std::clamp(options_.timeout / 8, milliseconds(20), milliseconds(500));
  const bool busy = (channel_.hub && channel_.hub->concluding()) || link_lost_ || terminate_seen_;
  return busy ? milliseconds(10) : calm;
}

void Watchdog::run() {
  unblock_signals({SIGTERM});
  while (request_ == Request::none) run_once();
  take_leave();
}

void Watchdog::run_once() {
  std::vector<pollfd> items{{wake_read_.get(), POLLIN, 0}};
  if (channel_.link.open()) items.push_back({channel_.link.fd(), POLLIN, 0});
  if (channel_.hub) channel_.hub->append_to_poll(items);
  ::poll(items.data(), items.size(), static_cast<int>(tick().count()));
  std::array<char, 64> bytes;
  while (::read(wake_read_.get(), bytes.data(), bytes.size()) > 0) {
  }
  const auto now = Clock::now();
  account_for_stops(now);
  check_terminate(now);
  look_at_devices(now);
  serve_hub(now);
  read_link(now);
  check_waits(now);
}

// Subtracts the time in which the whole process was stopped (ctrl-Z, a suspended job) from all
// waits.
void Watchdog::account_for_stops(Clock::time_point now) {
  const auto gap = now - last_look_;
  if (gap > milliseconds(2000)) {
    waits_.forgive(gap);
    reported_.reset();
  }
  last_look_ = now;
}

void Watchdog::check_terminate(Clock::time_point now) {
  if (!TerminateSignal::arrived()) return;
  if (!terminate_seen_) {
    terminate_seen_ = now;
    if (channel_.hub) channel_.hub->ignore_deaths_after(now + kDeathsAfterTerminate);
  }
  if (now - *terminate_seen_ > kTerminateHeld && !ending_) TerminateSignal::deliver();
}

void Watchdog::look_at_devices(Clock::time_point now) {
  const auto failed = waits_.look_at_devices(now);
  if (!failed || ending_) return;
  const std::string line = operation_at(*failed, waits_.state(0, now).step);
  if (!channel_.link.open() && !link_lost_) end_with(channel_.self.to_string() + ": " + line);
  channel_.link.send(FrameWriter().put(std::string_view(line)).frame(FrameKind::failure));
}

void Watchdog::serve_hub(Clock::time_point now) {
  if (!channel_.hub) return;
  channel_.hub->receive(now);
  const auto diagnosis = channel_.hub->conclude(now, waits_.state(0, now));
  if (!diagnosis) return;
  ending_ = true;
  print_lines(diagnosis->lines);
  channel_.hub->send_diagnosis();
  await_silence(kFollow);
  std::quick_exit(kFailed);
}

// Reads what arrives until all ranks are gone. Closing a socket with unread messages would reset
// the connection, and the rank at the other end would lose the last message.
void Watchdog::await_silence(milliseconds most) {
  const auto deadline = Clock::now() + most;
  while (!channel_.hub->all_gone() && Clock::now() < deadline) {
    std::vector<pollfd> items;
    channel_.hub->append_to_poll(items);
    ::poll(items.data(), items.size(), 10);
    channel_.hub->receive(Clock::now());
  }
}

// mpirun ends the job with the first rank that ends, so wait until rank 0 has printed. In this time
// the rank may also end by itself with the same error, and with an exit status of its own.
void Watchdog::follow_hub() {
  const auto deadline = Clock::now() + kFollow;
  while (request_ != Request::abandon && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(5));
}

void Watchdog::read_link(Clock::time_point now) {
  if (channel_.link.open()) {
    std::vector<Frame> frames;
    channel_.link.receive(frames);
    for (const Frame& frame : frames) handle(frame, now);
    const bool lost = !channel_.link.open() && !hub_said_goodbye_;
    const bool by_signal = terminate_seen_ && now - *terminate_seen_ > kDeathsAfterTerminate;
    if (lost && !by_signal) link_lost_ = now;
  }
  if (link_lost_ && now - *link_lost_ >= options_.delays.deaths)
    end_with(describe_death({channel_.hub_rank}, waits_.state(0, now)));
}

void Watchdog::handle(const Frame& frame, Clock::time_point now) {
  FrameReader reader(frame);
  if (frame.kind == FrameKind::query) {
    const auto key = reader.get<std::uint64_t>();
    channel_.link.send(state_frame(key, waits_.state(key, now)));
  } else if (frame.kind == FrameKind::goodbye) {
    hub_said_goodbye_ = true;
  } else if (frame.kind == FrameKind::diagnosis) {
    ending_ = true;
    if (reader.get<bool>()) follow_hub();
    if (request_ != Request::abandon) std::quick_exit(kFailed);
  }
}

void Watchdog::check_waits(Clock::time_point now) {
  if (options_.timeout.count() == 0) return;
  const auto wait = waits_.overdue(now, options_.timeout);
  if (!wait) return reported_.reset();
  if (!channel_.link.open()) {
    if (!link_lost_)
      end_with(fmt::format("{}: {} has waited for {} s; ending the job",
                           operation_at(wait->operation, wait->step), channel_.self.to_string(),
                           static_cast<double>(options_.timeout.count()) / 1000));
    return;
  }
  const bool known =
      reported_ && reported_->channel_key == wait->channel_key && reported_->sequence == wait->sequence;
  if (!known) {
    reported_ = wait;
    reported_at_ = now;
    channel_.link.send(overdue_frame(*wait));
  } else if (now - reported_at_ > options_.hub_answers) {
    // The hub on rank 0 has not reacted, so name rank 0 as the rank that does not respond.
    end_with(describe_overdue(*wait, {{channel_.hub_rank, std::nullopt}}, options_.timeout));
  }
}

void Watchdog::end_with(const std::string& line) {
  ending_ = true;
  // The process of the hub may be stopped but not dead. If it goes on later, it must not take the
  // end of this process for a death.
  channel_.link.send({FrameKind::abandon, {}});
  const HostElection election(channel_.token);
  if (election.won()) {
    print_lines({line});
    // Stay a moment, because a rank that ends later would otherwise win the election as well and
    // print the line again.
    std::this_thread::sleep_for(kFollow);
  }
  std::quick_exit(kFailed);
}

void Watchdog::abandon() {
  request_ = Request::abandon;
  wake();
  thread_.join();
  // The other ranks end, too, and mpirun then sends SIGTERM to this rank, which still has to print
  // its error.
  TerminateSignal::ignore();
}

void Watchdog::take_leave() {
  if (request_ == Request::abandon) {
    // Leave the connections open. They close when this process ends, after it has printed its
    // message.
    if (channel_.hub)
      channel_.hub->send_diagnosis(true);
    else
      channel_.link.send({FrameKind::abandon, {}});
    if (channel_.hub) channel_.hub->leak_connections();
    channel_.link.leak();
    return;
  }
  channel_.link.send({FrameKind::goodbye, {}});
  if (!channel_.hub) return;
  channel_.hub->say_goodbye();
  await_silence(kGoodbye);
}

}  // namespace convoy::comm
