// Tests the copies of a job's state (parameters, momentum, …) to the device: its parts must arrive
// in the order in which a step uses them, and all work must wait for the parts that it needs. The
// device is simulated and does everything as late as it may (simulated_queue.h).
#include "app/sharing/state_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "app/sharing/shared_device.h"
#include "tests/app/sharing/simulated_queue.h"

namespace convoy::app {
namespace {

using Use = DeviceGate::Use;
constexpr std::int64_t kPage = kMapAlignment, kWords = kPage / 8;
constexpr int kLayers = 4, kStatePages = 2 * kLayers, kScratchPages = 2;
using Words = std::vector<std::uint64_t>;

// A job on the simulated device. Its state has one page of parameters for each layer, from the last
// layer to the first, and as many pages of momentum. A step of training has a piece for each layer,
// which reads its parameters, and then a piece that updates everything. A step of evaluation has no
// update.
class PlayedJob {
 public:
  PlayedJob(SharedDevice& device, SimulatedQueue& queue, int number)
      : gate_(device.gate(number)), queue_(queue), stream_(reinterpret_cast<CUstream_st*>(number + 1)) {
    const MemoryPlace place = gate_.reserve({{kPage, kStatePages * kPage, kScratchPages * kPage}});
    state_ = reinterpret_cast<std::uint64_t*>(place.start[static_cast<int>(MemoryPart::state)]);
    scratch_ = reinterpret_cast<std::uint64_t*>(place.start[static_cast<int>(MemoryPart::scratch)]);
    expected_.resize(kStatePages * kWords);
    for (int layer = kLayers; layer-- > 0;) uses_.push_back({{parameters(layer), kPage}});
    uses_.push_back({{momentum(), kLayers * kPage}});
    std::iota(expected_.begin(), expected_.end(), 1000u * static_cast<unsigned>(number + 1));
    const Admission admitted(&gate_, Use::memory);
    std::ranges::copy(expected_, state_);
  }

  void start_step(bool trains) {
    const int pieces = kLayers + (trains ? 1 : 0);
    for (int piece = 0; piece < pieces; ++piece) {
      const DeviceGate::Piece one{0, piece + 1 == pieces, &uses_[static_cast<std::size_t>(piece)]};
      const Admission admitted(&gate_, Use::step, one, stream_);
      queue_.launch(stream_, [=, this] { run(state_, scratch_, piece); });
      if (one.last) step_ = queue_.mark(stream_);
    }
    Words scratch(kScratchPages * kWords);
    for (int piece = 0; piece < pieces; ++piece) run(expected_.data(), scratch.data(), piece);
    gate_.finished(trains);
  }
  void wait() { queue_.wait(step_); }
  Words state() {
    wait();
    const Admission admitted(&gate_, Use::memory);
    return {state_, state_ + kStatePages * kWords};
  }
  const Words& expected() const { return expected_; }
  // Returns the pages that a piece uses. Pieces are numbered as in uses_: first one for each layer,
  // then the update.
  const MemoryRange& use(int piece) const { return uses_[static_cast<std::size_t>(piece)][0]; }

 private:
  const std::uint64_t* parameters(int layer) const { return state_ + layer * kWords; }
  const std::uint64_t* momentum() const { return state_ + kLayers * kWords; }

  // Runs one piece. The scratch memory carries a sum over the layers from each piece to the next.
  static void run(std::uint64_t* state, std::uint64_t* scratch, int piece) {
    if (piece == 0) std::fill_n(scratch, kScratchPages * kWords, 0);
    if (piece < kLayers) {
      const std::uint64_t* const own = state + (kLayers - 1 - piece) * kWords;
      for (int i = 0; i < kWords; ++i) scratch[i] = scratch[i] * 3 + own[i];
      return;
    }
    for (int i = 0; i < kLayers * kWords; ++i) {
      std::uint64_t& momentum = state[kLayers * kWords + i];
      momentum = momentum * 5 + scratch[i % kWords];
      state[i] += momentum;
    }
  }

  DeviceGate& gate_;
  SimulatedQueue& queue_;
  const kernels::Stream stream_;
  std::uint64_t *state_ = nullptr, *scratch_ = nullptr;
  std::vector<std::vector<MemoryRange>> uses_;
  Words expected_;  // the state as if the job ran alone
  DeviceQueue::Mark step_;
};

// Jobs on a device with room for `pages` of states and scratch memory.
struct Played {
  Played(int count, std::int64_t pages, bool prefetch, bool backwards = false) {
    SharingOptions options;
    options.memory_limit = (count + pages) * kPage;
    options.prefetch = prefetch;
    options.least_group_bytes = kPage;
    auto made = std::make_unique<SimulatedQueue>(backwards);
    queue = made.get();
    device = std::make_unique<SharedDevice>(options, std::move(made));
    for (int job = 0; job < count; ++job) device->add({std::string(1, char('a' + job))}, false);
    for (int job = 0; job < count; ++job) {
      jobs.push_back(std::make_unique<PlayedJob>(*device, *queue, job));
      device->set_step_ms(job, 1e9);  // so long that a turn of a job is one step
    }
  }
  SimulatedQueue* queue = nullptr;
  std::unique_ptr<SharedDevice> device;
  std::vector<std::unique_ptr<PlayedJob>> jobs;
};

TEST(SharedDeviceCopies, StatesKeepTheirBits) {
  for (const int way : {0, 1, 2, 3})
    for (const std::int64_t pages : {10, 14, 18, 22}) {
      const bool prefetch = way % 2 == 0, backwards = way / 2 == 0;
      Played played(3, pages, prefetch, backwards);
      for (int step = 0; step < 24; ++step)
        for (std::size_t job = 0; job < 3; ++job) {
          PlayedJob& one = *played.jobs[job];
          one.start_step(step % 5 != 3);
          if ((step + static_cast<int>(job)) % 7 == 2) one.wait();
          if (step % 9 == 4) {
            EXPECT_EQ(one.state(), one.expected()) << pages << " pages, step " << step;
          }
        }
      std::int64_t copied = 0;
      for (int job = 0; job < 3; ++job) {
        copied += played.device->progress(job).swapped_bytes;
        EXPECT_EQ(played.jobs[static_cast<std::size_t>(job)]->state(),
                  played.jobs[static_cast<std::size_t>(job)]->expected())
            << "job " << job << " in " << pages << " pages, way " << way;
      }
      EXPECT_GT(copied, 20 * kStatePages * kPage) << pages;
    }
}

// Two states share memory. When the first piece of a step has run, only the part that it uses may
// have been copied. After that, one part must follow for each piece.
TEST(SharedDeviceCopies, APieceWaitsForWhatItUsesOnly) {
  Played played(2, kStatePages + kScratchPages, false);
  PlayedJob &a = *played.jobs[0], &b = *played.jobs[1];
  a.start_step(true), b.start_step(true);
  b.wait();
  const std::size_t before = played.queue->copies().size();
  std::vector<std::size_t> arrived;
  // Run the pieces one by one here, to wait after each of them.
  DeviceGate& gate = played.device->gate(0);
  const kernels::Stream stream(reinterpret_cast<CUstream_st*>(1));
  std::vector<const void*> order;
  for (int piece = 0; piece <= kLayers; ++piece) {
    const std::vector<MemoryRange> uses{a.use(piece)};
    {
      const Admission admitted(&gate, Use::step, {0, piece == kLayers, &uses}, stream);
      played.queue->launch(stream, [] {});
    }
    played.queue->wait(played.queue->mark(stream));
    std::size_t done = 0;
    order.clear();
    for (std::size_t i = before; i < played.queue->copies().size(); ++i) {
      const SimulatedQueue::Copy& copy = played.queue->copies()[i];
      if (copy.direction != DeviceQueue::Direction::to_device) continue;
      order.push_back(copy.device);
      done += copy.work->done ? 1 : 0;
    }
    arrived.push_back(done);
  }
  EXPECT_EQ(arrived, (std::vector<std::size_t>{1, 2, 3, 4, 5}));
  std::vector<const void*> expected;
  for (int piece = 0; piece <= kLayers; ++piece) expected.push_back(a.use(piece).begin);
  EXPECT_EQ(order, expected) << "the last layer in memory is used first";
}

// Services that do not fit side by side share memory. A service does not change its state, so its
// state must be copied to the host only once. It must be copied to the device before every step
// that follows a step of another service.
TEST(SharedDeviceCopies, AServiceIsCopiedInOnly) {
  SharingOptions options;
  options.memory_limit = (2 + kStatePages + kScratchPages) * kPage;
  options.least_group_bytes = kPage;
  auto made = std::make_unique<SimulatedQueue>();
  SimulatedQueue& queue = *made;
  SharedDevice device(options, std::move(made));
  std::vector<std::unique_ptr<PlayedJob>> jobs;
  for (const char* name : {"a", "b"}) device.add({name, 0, true}, false);
  for (int job = 0; job < 2; ++job) jobs.push_back(std::make_unique<PlayedJob>(device, queue, job));
  EXPECT_GT(device.gate(0).longest_piece_ms(), 0) << "pieces wait for parts of the state";
  for (int step = 0; step < 10; ++step)
    for (const auto& job : jobs) job->start_step(false);
  std::int64_t out = 0, in = 0;
  for (const SimulatedQueue::Copy& copy : queue.copies())
    (copy.direction == DeviceQueue::Direction::to_host ? out : in) += static_cast<std::int64_t>(copy.bytes);
  EXPECT_EQ(out, 2 * kStatePages * kPage);
  EXPECT_EQ(in, 20 * kStatePages * kPage);
  for (const auto& job : jobs) EXPECT_EQ(job->state(), job->expected());
}

// A service's turn ends while parts of its state are still being copied in, because its step did
// not use them. These copies must not overwrite the scratch memory of the next service.
TEST(SharedDeviceCopies, LateCopiesSpoilNothing) {
  SharingOptions options;
  options.memory_limit = (2 + 9) * kPage;
  options.least_group_bytes = kPage;
  auto made = std::make_unique<SimulatedQueue>();
  SimulatedQueue& queue = *made;
  SharedDevice device(options, std::move(made));
  for (const char* name : {"large", "small"}) device.add({name, 0, true}, false);
  const auto reserve = [&](int job, std::int64_t state, std::int64_t scratch) {
    const MemoryPlace place = device.gate(job).reserve({{kPage, state * kPage, scratch * kPage}});
    const Admission admitted(&device.gate(job), Use::memory);
    std::fill_n(place.start[static_cast<int>(MemoryPart::state)], state * kPage, std::byte(7));
    return place;
  };
  const auto launch = [&](int job, bool last, const std::vector<MemoryRange>& uses,
                          std::function<void()> run) {
    const kernels::Stream stream(reinterpret_cast<CUstream_st*>(job + 1));
    const Admission admitted(&device.gate(job), Use::step, {0, last, &uses}, stream);
    queue.launch(stream, std::move(run));
    return queue.mark(stream);
  };
  const MemoryPlace large = reserve(0, 8, 1), small = reserve(1, 1, 4);
  const std::vector<MemoryRange> first{{large.start[static_cast<int>(MemoryPart::state)], kPage}};
  std::byte* const scratch = small.start[static_cast<int>(MemoryPart::scratch)];
  launch(0, true, first, [] {});  // tells the device in which order the pieces use the state
  launch(1, true, first, [] {});
  launch(0, true, first, [] {});
  queue.wait(launch(1, false, {}, [&] { std::fill_n(scratch, 4 * kPage, std::byte(9)); }));
  std::int64_t kept = 0;
  queue.wait(launch(1, true, first, [&] { kept = std::count(scratch, scratch + 4 * kPage, std::byte(9)); }));
  EXPECT_EQ(kept, 4 * kPage);
}

}  // namespace
}  // namespace convoy::app
