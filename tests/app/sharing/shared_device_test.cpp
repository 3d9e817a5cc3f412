// Tests how jobs share a device. Threads with host memory stand for the jobs.
#include "app/sharing/shared_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

namespace convoy::app {
namespace {

using Use = DeviceGate::Use;
constexpr int kState = static_cast<int>(MemoryPart::state), kScratch = static_cast<int>(MemoryPart::scratch);
constexpr std::int64_t kPage = kMapAlignment;

MemoryNeed need(std::int64_t state, std::int64_t scratch) {
  return {{kPage, state * kPage, scratch * kPage}};
}

// Runs the jobs in threads; body(job, gate) is a thread's work.
void run_jobs(SharedDevice& device, int jobs, const std::function<void(int job, DeviceGate& gate)>& body) {
  std::vector<std::thread> threads;
  for (int job = 0; job < jobs; ++job) device.add({std::string(1, char('a' + job))}, true);
  for (int job = 0; job < jobs; ++job)
    threads.emplace_back([&, job] {
      body(job, device.gate(job));
      device.end(job);
    });
  for (std::thread& thread : threads) thread.join();
}

SharingOptions limited(std::int64_t pages, bool prefetch = true) {
  SharingOptions options;
  options.memory_limit = pages * kPage;
  options.prefetch = prefetch;
  return options;
}

// Each of three jobs counts its steps in every byte of its state (5 pages), and overwrites its
// scratch memory (4 pages). If the device has too little memory, states are copied to the host and
// back, and must not change.
void expect_states_survive(const SharingOptions& options, std::int64_t* swapped) {
  SharedDevice device(options);
  std::atomic<int> wrong = 0;
  std::barrier all(3);
  run_jobs(device, 3, [&](int job, DeviceGate& gate) {
    const MemoryPlace place = gate.reserve(need(5, 4));
    auto* const state = place.start[kState];
    all.arrive_and_wait();
    const auto value = [job](int step) { return std::byte(job * 80 + step % 80); };
    for (int step = 0; step < 300; ++step) {
      const Admission admitted(&gate, step % 7 == 3 ? Use::memory : Use::step);
      const bool same = std::all_of(state, state + 5 * kPage, [&](std::byte one) {
        return one == (step == 0 ? std::byte(0) : value(step - 1));
      });
      wrong += same ? 0 : 1;
      std::fill_n(state, 5 * kPage, value(step));
      std::fill_n(place.start[kScratch], 4 * kPage, std::byte(0xff));
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  EXPECT_EQ(wrong, 0);
  for (int job = 0; job < 3; ++job) *swapped += device.progress(job).swapped_bytes;
}

TEST(SharedDevice, StatesSurviveInTooLittleMemory) {
  std::int64_t swapped = 0;
  expect_states_survive(limited(3 + 14), &swapped);
  EXPECT_GT(swapped, 3 * 5 * kPage) << "the states must have been copied";
}

TEST(SharedDevice, StatesSurviveWithoutPrefetching) {
  std::int64_t swapped = 0;
  expect_states_survive(limited(3 + 9, false), &swapped);
  EXPECT_GT(swapped, 3 * 5 * kPage) << "the states must have been copied";
}

TEST(SharedDevice, StatesStayWhereThereIsRoom) {
  std::int64_t swapped = 0;
  expect_states_survive(limited(3 + 27), &swapped);
  EXPECT_EQ(swapped, 0);
}

// A step may be admitted to the device in several pieces. Two jobs that share scratch memory must
// never be between the pieces of a step at the same time.
TEST(SharedDevice, AStepIsNotInterruptedByAJobThatSharesItsMemory) {
  SharedDevice device(limited(3 + 3 * 1 + 6));
  std::atomic<int> in_step = 0, most = 0;
  run_jobs(device, 3, [&](int, DeviceGate& gate) {
    gate.reserve(need(1, 6));
    for (int step = 0; step < 100; ++step)
      for (int piece = 0; piece < 3; ++piece) {
        const Admission admitted(&gate, Use::step, {0, piece == 2});
        if (piece == 0) most = std::max<int>(most, ++in_step);
        if (piece == 2) --in_step;
      }
  });
  EXPECT_EQ(most, 1);
}

TEST(SharedDevice, NobodyEntersWhileAJobIsAlone) {
  SharedDevice device({});
  std::atomic<int> inside = 0, met = 0, together = 0;
  run_jobs(device, 3, [&](int job, DeviceGate& gate) {
    gate.reserve(need(1, 1));
    if (job == 0) device.arrange({{0, 1, 2}});
    for (int step = 0; step < 200; ++step) {
      const bool alone = step % 50 == 10 * job;
      const Admission admitted(&gate, alone ? Use::alone : Use::memory);
      const int others = inside++;
      if (alone && others > 0) ++met;
      if (!alone && others > 0) ++together;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (alone && inside != 1) ++met;
      --inside;
    }
  });
  EXPECT_EQ(met, 0);
  EXPECT_GT(together, 0) << "jobs without common memory may be inside together";
}

// Until the job of high priority has ended, the job of low priority must run hardly any step.
TEST(SharedDevice, AJobOfHigherPriorityGoesFirst) {
  SharingOptions patient;
  patient.idle = std::chrono::milliseconds(500);
  SharedDevice device(patient);
  device.add({"low", 0}, true);
  device.add({"high", 5}, true);
  // `low_before` and `low_after` are the steps that `low` has done when `high` begins and when it
  // ends. On a busy machine, `high` may begin late.
  std::atomic<int> low_steps = 0, low_before = -1, low_after = -1;
  const auto work = [&](int job) {
    DeviceGate& gate = device.gate(job);
    gate.reserve(need(1, 1));
    for (int step = 0; step < 100; ++step) {
      {
        const Admission admitted(&gate, Use::step);
        if (job == 1 && step == 0) low_before = low_steps.load();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      if (job == 0) ++low_steps;
    }
    if (job == 1) low_after = low_steps.load();
    device.end(job);
  };
  std::thread low(work, 0), high(work, 1);
  low.join(), high.join();
  EXPECT_LT(low_after - low_before, 10);
  EXPECT_EQ(low_steps, 100);
}

TEST(SharedDevice, TurnsGoRoundStepByStep) {
  SharedDevice device({});
  std::vector<int> order;
  run_jobs(device, 2, [&](int job, DeviceGate& gate) {
    gate.reserve(need(1, 1));
    for (int step = 0; step < 50; ++step) {
      const Admission admitted(&gate, Use::step);
      order.push_back(job);  // no lock is needed, because the jobs take turns
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  ASSERT_EQ(order.size(), 100u);
  int changes = 0;
  for (std::size_t i = 1; i < order.size(); ++i) changes += order[i] != order[i - 1] ? 1 : 0;
  EXPECT_GT(changes, 50);
}

TEST(SharedDevice, TurnsMayHaveSeveralSteps) {
  SharedDevice device({});
  std::vector<int> order;
  std::barrier all(2);
  run_jobs(device, 2, [&](int job, DeviceGate& gate) {
    gate.reserve(need(1, 1));
    all.arrive_and_wait();
    device.set_turn_factor(job, job == 0 ? 5 : 1);
    all.arrive_and_wait();
    for (int step = 0; step < (job == 0 ? 500 : 100); ++step) {
      const Admission admitted(&gate, Use::step);
      order.push_back(job);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  // With turns of one step each, the steps of job 1 would end after 100 steps of job 0. A thread
  // that was held up loses its turn.
  const auto end = std::ranges::find(order.rbegin(), order.rend(), 1).base();
  EXPECT_GT(std::count(order.begin(), end, 0), 200);
}

TEST(SharedDevice, OnlyTheJobThatDoesNotFitFails) {
  SharedDevice device(limited(20));
  std::atomic<int> failed = -1, done = 0;
  run_jobs(device, 3, [&](int job, DeviceGate& gate) {
    try {
      gate.reserve(job == 1 ? need(30, 1) : need(2, 4));
      const Admission admitted(&gate, Use::step);
      ++done;
    } catch (const kernels::OutOfMemory&) {
      failed = job;
    }
  });
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(done, 2);
}

// While a service expects a step or has a step in flight, no training may be admitted to the
// device. The service may be admitted at any time.
TEST(SharedDevice, ATrainingWaitsForAService) {
  SharedDevice device({});
  const int training = device.add({"training"}, true), service = device.add({"service", 0, true}, true);
  std::atomic<int> steps = 0;
  std::atomic<bool> stop = false;
  std::thread thread([&] {
    DeviceGate& gate = device.gate(training);
    gate.reserve(need(1, 1));
    while (!stop) {
      const Admission admitted(&gate, Use::step);
      ++steps;
    }
  });
  DeviceGate& gate = device.gate(service);
  gate.reserve(need(1, 1));
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  while (steps < 3) pause();
  for (int round = 0; round < 3; ++round) {
    gate.expect_step(true);
    pause();
    const int held = steps;
    pause();
    EXPECT_EQ(steps, held) << "a step is expected";
    { const Admission admitted(&gate, Use::step); }
    gate.expect_step(false);
    pause();
    EXPECT_EQ(steps, held) << "a step is in flight";
    gate.finished(false);
    while (steps < held + 3) pause();
  }
  stop = true;
  thread.join();
}

// A service may have multiprocessors of its own. Trainings then go on while it has work.
TEST(SharedDevice, ATrainingDoesNotWaitForAServiceInItsOwnPart) {
  SharedDevice device({});
  device.add({"service", 0, true, true}, false);
  device.add({"training"}, false);
  for (int job = 0; job < 2; ++job) device.gate(job).reserve(need(1, 1));
  device.gate(0).expect_step(true);
  { const Admission running(&device.gate(0), Use::step); }
  std::atomic<int> steps = 0;
  std::thread training([&] {
    for (; steps < 5; ++steps) const Admission admitted(&device.gate(1), Use::step);
  });
  for (int wait = 0; wait < 500 && steps < 5; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(steps, 5);
  device.end(0);  // lets the training in if the test has failed
  training.join();
}

// The step of a service may be divided into pieces, but finished() is called only once per step.
// After that call a training must be admitted.
TEST(SharedDevice, TrainingsGoOnAfterADividedStepOfAService) {
  SharedDevice device({});
  device.add({"service", 0, true}, false);
  device.add({"training"}, false);
  for (int job = 0; job < 2; ++job) device.gate(job).reserve(need(1, 1));
  for (const bool last : {false, true}) {
    const Admission admitted(&device.gate(0), Use::step, {0, last});
  }
  device.gate(0).finished(false);
  std::atomic<bool> entered = false;
  std::thread training([&] {
    const Admission admitted(&device.gate(1), Use::step);
    entered = true;
  });
  for (int wait = 0; wait < 500 && !entered; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(entered);
  device.end(0);  // lets the training in if the test has failed
  training.join();
}

// A training is between two pieces of its step, a service expects a step, and a third job waits to
// have the device alone. The training must be admitted, or all three would wait for each other.
TEST(SharedDevice, AStepThatHasBegunEndsForAJobThatWaitsAlone) {
  SharedDevice device({});
  const int training = device.add({"training"}, true), service = device.add({"service", 0, true}, true),
            timed = device.add({"timed"}, true);
  std::atomic<int> done = 0;
  const auto start = [&](int job, const std::function<void(DeviceGate&)>& work) {
    return std::thread([&, job, work] {
      device.gate(job).reserve(need(1, 1));
      work(device.gate(job));
      ++done;
    });
  };
  std::barrier begun(3);
  std::thread a = start(training, [&](DeviceGate& gate) {
    { const Admission first(&gate, Use::step, {0, false}); }
    begun.arrive_and_wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const Admission second(&gate, Use::step, {0, true});
  });
  std::thread b = start(service, [&](DeviceGate& gate) {
    begun.arrive_and_wait();
    gate.expect_step(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    { const Admission step(&gate, Use::step); }
    gate.finished(false);
    gate.expect_step(false);
  });
  std::thread c = start(timed, [&](DeviceGate& gate) {
    begun.arrive_and_wait();
    const Admission alone(&gate, Use::alone);
  });
  a.join(), b.join(), c.join();
  EXPECT_EQ(done, 3);
}

// A job that comes later must get the memory of a job that has ended.
TEST(SharedDevice, ALateJobGetsMemoryThatIsFree) {
  SharedDevice device(limited(12));
  const int first = device.add({"first"}, true);
  device.gate(first).reserve(need(5, 5));
  const int second = device.add({"second"}, false);
  device.end(first);
  const MemoryPlace place = device.gate(second).reserve(need(6, 5));
  const Admission admitted(&device.gate(second), Use::step);
  EXPECT_TRUE(std::all_of(place.start[kState], place.start[kState] + 6 * kPage,
                          [](std::byte one) { return one == std::byte(0); }));
}

}  // namespace
}  // namespace convoy::app
