// Tests the watchdog without MPI. A job of forked processes, each with the watchdog of a rank,
// meets faults. Checks each process's exit status, the job's output and how soon it ends.
#include "comm/watchdog/watchdog.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <sstream>
#include <stdexcept>

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
constexpr int kRanks = 3;

struct Rank {
  int rank;
  WaitRegistry waits;
  std::unique_ptr<Watchdog> watchdog;
  int channel = 0;
  int ready_pipe = -1;

  // Tells the parent that this rank is ready for signals.
  void ready() const {
    const char byte = 0;
    if (::write(ready_pipe, &byte, 1) != 1) ::_exit(100);
  }
  void enter(const char* operation) { waits.enter(channel, OperationName(operation)); }
  // Blocks like a rank in a collective whose partners never come.
  [[noreturn]] void block_in(const char* operation) {
    const OperationName name(operation);
    const WaitScope wait(waits, channel, waits.enter(channel, name), name);
    ready();
    for (;;) ::pause();
  }
};

struct Outcome {
  std::array<int, kRanks> status{};  // exit status, or minus the number of the signal that ended the rank
  std::vector<std::string> lines;    // lines on standard error
  double seconds = 0;
};

class Job {
 public:
  Job(milliseconds timeout, const std::function<void(Rank&)>& body) : errors_(std::tmpfile()) {
    if (::pipe(ready_.data()) != 0) throw std::runtime_error("no pipe");
    HubListener listener(true);
    start_ = Clock::now();
    // Without this, the forked children would print the parent's buffered output again.
    std::fflush(nullptr);
    for (int rank = 0; rank < kRanks; ++rank)
      if ((pids_[static_cast<std::size_t>(rank)] = ::fork()) == 0) be(rank, listener, timeout, body);
  }
  ~Job() {
    for (const pid_t pid : pids_)
      if (pid > 0) ::kill(pid, SIGKILL);
    for (const int end : ready_) ::close(end);
    std::fclose(errors_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Waits until every rank has called ready(), as block_in() does.
  void await_ready() {
    char byte = 0;
    for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(::read(ready_[0], &byte, 1), 1);
  }
  void signal(int rank, int number) { ::kill(pids_[static_cast<std::size_t>(rank)], number); }
  std::string name(int rank) const {
    return RankIdentity{rank, "testhost", pids_[static_cast<std::size_t>(rank)]}.to_string();
  }
  // Waits until this rank ends, and fails the test if that takes 30 s.
  int status_of(int rank) {
    pid_t& pid = pids_[static_cast<std::size_t>(rank)];
    int status = 0;
    for (const auto deadline = Clock::now() + std::chrono::seconds(30); Clock::now() < deadline;
         ::usleep(5000))
      if (::waitpid(pid, &status, WNOHANG) == pid) {
        pid = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
    ADD_FAILURE() << "rank " << rank << " hangs";
    return -1000;
  }
  Outcome finish() {
    Outcome outcome;
    for (int rank = 0; rank < kRanks; ++rank)
      if (pids_[static_cast<std::size_t>(rank)] > 0)
        outcome.status[static_cast<std::size_t>(rank)] = status_of(rank);
    outcome.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::rewind(errors_);
    std::array<char, 2000> line;
    while (std::fgets(line.data(), line.size(), errors_) != nullptr)
      outcome.lines.emplace_back(line.data(), std::char_traits<char>::length(line.data()) - 1);
    return outcome;
  }

 private:
  [[noreturn]] void be(int rank, HubListener& listener, milliseconds timeout,
                       const std::function<void(Rank&)>& body) {
    ::dup2(::fileno(errors_), STDERR_FILENO);
    WatchdogSocket side;
    side.self = {rank, "testhost", ::getpid()};
    side.hub_rank = {0, "testhost", rank == 0 ? ::getpid() : pids_[0]};
    side.token = listener.address().token;
    if (rank == 0) {
      auto peers = listener.accept(kRanks, std::chrono::seconds(20));
      auto [own, hubs] = connected_pair();
      side.link = std::move(own);
      peers.insert(peers.begin(), HubPeer{side.self, std::move(hubs)});
      side.hub = std::make_unique<Hub>(std::move(peers), timeout);
    } else {
      side.link = connect_to_hub(listener.address(), side.self, std::chrono::seconds(20));
    }
    Rank self{.rank = rank, .waits = {}, .watchdog = nullptr, .ready_pipe = ready_[1]};
    self.channel = self.waits.open_channel(1, {0, 1, 2});
    self.waits.set_step(7);
    WatchdogOptions options;
    options.timeout = timeout;
    self.watchdog = std::make_unique<Watchdog>(self.waits, std::move(side), options);
    body(self);
    self.watchdog.reset();
    ::_exit(0);
  }

  std::FILE* errors_;
  std::array<int, 2> ready_{};
  std::array<pid_t, kRanks> pids_{};
  Clock::time_point start_;
};

[[noreturn]] void compute_forever() {
  for (;;) ::usleep(1000);
}

constexpr milliseconds kShort{600}, kLong{60'000};

void expect_one_line(const Outcome& outcome, const std::string& line) {
  ASSERT_EQ(outcome.lines.size(), 1u) << testing::PrintToString(outcome.lines);
  EXPECT_EQ(outcome.lines.front(), line);
}

TEST(Watchdog, NamesARankThatNeverEnters) {
  Job job(kShort, [](Rank& self) {
    self.enter("all_reduce loss");
    if (self.rank == 2) compute_forever();
    self.block_in("all_reduce gradients bucket 3");
  });
  const std::string name = job.name(2);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.status, (std::array<int, kRanks>{1, 1, 1}));
  expect_one_line(outcome,
                  "convoy: all_reduce gradients bucket 3 (step 7): no answer from " + name +
                      " within 0.6 s: it is in no collective, its last was all_reduce loss (step 7); "
                      "ending the job");
  EXPECT_LT(outcome.seconds, 10);
}

TEST(Watchdog, NamesTheRanksThatWaitElsewhere) {
  Job job(kShort, [](Rank& self) {
    if (self.rank == 0) {
      self.enter("broadcast weights");
      self.block_in("all_reduce loss");
    }
    ::usleep(200'000);
    self.block_in("broadcast weights");
  });
  const std::string first = job.name(1), second = job.name(2);
  const Outcome outcome = job.finish();
  ASSERT_EQ(outcome.lines.size(), 1u);
  EXPECT_NE(outcome.lines[0].find("no answer from " + first + ", " + second + " within"), std::string::npos)
      << outcome.lines[0];
  EXPECT_NE(outcome.lines[0].find("it waits in broadcast weights (step 7)"), std::string::npos)
      << outcome.lines[0];
}

TEST(Watchdog, SaysWhenAllRanksAreThereButCallDifferently) {
  Job job(kShort, [](Rank& self) { self.block_in(self.rank == 1 ? "barrier epoch" : "all_reduce loss"); });
  const Outcome outcome = job.finish();
  ASSERT_EQ(outcome.lines.size(), 1u);
  // Whichever rank reports first, the message must name both operations.
  EXPECT_NE(outcome.lines[0].find("although all 3 ranks have come to it, but rank"), std::string::npos)
      << outcome.lines[0];
  EXPECT_NE(outcome.lines[0].find("barrier epoch"), std::string::npos);
  EXPECT_NE(outcome.lines[0].find("all_reduce loss"), std::string::npos);
}

TEST(Watchdog, NamesAKilledRankAtOnce) {
  for (const int victim : {0, 2}) {
    Job job(kLong, [&](Rank& self) {
      if (self.rank == victim) {
        ::usleep(100'000);
        ::kill(::getpid(), SIGKILL);
      }
      self.block_in("all_reduce loss");
    });
    const std::string name = job.name(victim);
    const Outcome outcome = job.finish();
    for (int rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(outcome.status[static_cast<std::size_t>(rank)], rank == victim ? -SIGKILL : 1)
          << "rank " << rank;
    expect_one_line(outcome, "convoy: " + name +
                                 " died (killed or crashed) during all_reduce loss (step 7); ending the job");
    EXPECT_LT(outcome.seconds, 10);
  }
}

TEST(Watchdog, NamesAStoppedRank) {
  for (const int victim : {0, 1}) {
    Job job(kShort, [&](Rank& self) {
      if (self.rank == victim) ::kill(::getpid(), SIGSTOP);
      self.block_in("all_reduce loss");
    });
    const std::string name = job.name(victim);
    EXPECT_EQ(job.status_of(victim == 0 ? 1 : 0), 1);
    EXPECT_EQ(job.status_of(2), 1);
    job.signal(victim, SIGCONT);
    EXPECT_EQ(job.status_of(victim), 1) << "a rank that wakes up after the end must end too";
    const Outcome outcome = job.finish();
    ASSERT_FALSE(outcome.lines.empty());
    EXPECT_EQ(outcome.lines.front(),
              "convoy: all_reduce loss (step 7): no answer from " + name +
                  " within 0.6 s: it does not respond at all: stopped, or its host is cut "
                  "off; ending the job");
    EXPECT_EQ(outcome.lines.size(), 1u)
        << "it must not take the others' end for deaths: " << outcome.lines.back();
  }
}

// When a rank has died, mpirun sends SIGTERM to the others. They must report the death, not end as
// if the batch system had stopped the job.
TEST(Watchdog, TellsADeathFromARequestToTerminate) {
  Job job(kLong, [](Rank& self) { self.block_in("all_reduce loss"); });
  job.await_ready();
  const std::string name = job.name(1);
  for (const int rank : {1, 0, 2}) job.signal(rank, rank == 1 ? SIGKILL : SIGTERM);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.status, (std::array<int, kRanks>{1, -SIGKILL, 1}));
  expect_one_line(outcome, "convoy: " + name +
                               " died (killed or crashed) during all_reduce loss (step 7); ending the job");
}

TEST(Watchdog, LetsARequestToTerminateThrough) {
  Job job(kLong, [](Rank& self) { self.block_in("all_reduce loss"); });
  job.await_ready();
  for (int rank = 0; rank < kRanks; ++rank) job.signal(rank, SIGTERM);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.status, (std::array<int, kRanks>{-SIGTERM, -SIGTERM, -SIGTERM}));
  EXPECT_TRUE(outcome.lines.empty()) << outcome.lines.front();
}

TEST(Watchdog, LeavesTheProgramsOwnHandlerAlone) {
  Job job(kLong, [](Rank& self) {
    static std::atomic<bool> inquired = false, on_this_thread = false;
    std::signal(SIGTERM, [](int) {
      on_this_thread = ::gettid() == ::getpid();
      inquired = true;
    });
    self.ready();
    while (!inquired) ::usleep(1000);
    self.watchdog.reset();
    ::_exit(on_this_thread ? 76 : 75);
  });
  job.await_ready();
  for (int rank = 0; rank < kRanks; ++rank) job.signal(rank, SIGTERM);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.status, (std::array<int, kRanks>{75, 75, 75}));
  EXPECT_TRUE(outcome.lines.empty()) << outcome.lines.front();
}

// A device whose collective has failed. The rank's own thread is busy with something else.
struct FailedDevice : DeviceOperations {
  Progress progress() const override { return {}; }
  std::string failure() const override {
    return "all_reduce gradients bucket 0: NCCL: remote process exited";
  }
};

TEST(Watchdog, PrintsTheSameFailureOfAllDevicesOnce) {
  Job job(kLong, [](Rank& self) {
    const FailedDevice device;
    self.waits.attach(self.channel, device);
    compute_forever();
  });
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.status, (std::array<int, kRanks>{1, 1, 1}));
  expect_one_line(outcome, "convoy: all_reduce gradients bucket 0: NCCL: remote process exited (step 7)");
}

TEST(Watchdog, PrintsTheFailureOfOneDeviceWithItsRank) {
  Job job(kLong, [](Rank& self) {
    const FailedDevice device;
    if (self.rank == 1) self.waits.attach(self.channel, device);
    self.block_in("barrier epoch");
  });
  const std::string name = job.name(1);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.status, (std::array<int, kRanks>{1, 1, 1}));
  expect_one_line(
      outcome, "convoy: " + name + ": all_reduce gradients bucket 0: NCCL: remote process exited (step 7)");
}

TEST(Watchdog, FollowsARankThatLeavesOnAnError) {
  for (const int leaver : {0, 1}) {
    Job job(kLong, [&](Rank& self) {
      if (self.rank != leaver) self.block_in("barrier epoch");
      self.watchdog->abandon();
      // In this time a real rank unwinds its stack and prints its error.
      ::usleep(100'000);
      print_lines({"its own words"});
      ::_exit(2);
    });
    const Outcome outcome = job.finish();
    for (int rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(outcome.status[static_cast<std::size_t>(rank)], rank == leaver ? 2 : 1);
    expect_one_line(outcome, "convoy: its own words");
  }
}

// All ranks find the same error and leave. One must print it, and each must end with its own exit
// status. mpirun sends SIGTERM when the first rank ends; the others must still finish.
TEST(Watchdog, LetsRanksThatLeaveTogetherFinish) {
  for (const int slow : {0, 1}) {
    Job job(kLong, [&](Rank& self) {
      if (self.rank == slow) ::usleep(100'000);
      self.watchdog->abandon();
      if (self.rank == slow) ::usleep(100'000);
      if (self.rank == slow) print_lines({"its own words"});
      ::_exit(2);
    });
    EXPECT_EQ(job.status_of(2), 2);
    ::usleep(50'000);
    job.signal(slow, SIGTERM);
    const Outcome outcome = job.finish();
    EXPECT_EQ(outcome.status[0], 2);
    EXPECT_EQ(outcome.status[1], 2);
    expect_one_line(outcome, "convoy: its own words");
  }
}

TEST(Watchdog, SaysNothingInAnOrderlyEnd) {
  Job job(kShort, [](Rank& self) {
    self.enter("all_reduce loss");
    ::usleep(static_cast<useconds_t>(self.rank) * 300'000);
  });
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.status, (std::array<int, kRanks>{0, 0, 0}));
  EXPECT_TRUE(outcome.lines.empty()) << outcome.lines.front();
}

TEST(Watchdog, DoesNotCountTheTimeInWhichTheWholeJobIsStopped) {
  Job job(milliseconds(2500), [](Rank& self) {
    const OperationName name("all_reduce loss");
    const WaitScope wait(self.waits, self.channel, self.waits.enter(self.channel, name), name);
    self.ready();
    // During these sleeps the test stops all processes for longer than the timeout.
    ::usleep(600'000);
    ::usleep(600'000);
  });
  job.await_ready();
  for (int rank = 0; rank < kRanks; ++rank) job.signal(rank, SIGSTOP);
  ::usleep(3'500'000);
  for (int rank = 0; rank < kRanks; ++rank) job.signal(rank, SIGCONT);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.status, (std::array<int, kRanks>{0, 0, 0}));
  EXPECT_TRUE(outcome.lines.empty()) << outcome.lines.front();
}

}  // namespace
}  // namespace convoy::comm
