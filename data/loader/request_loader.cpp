#include "data/loader/request_loader.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "data/loader/batch_buffers.h"
#include "data/loader/schedule.h"
#include "data/loader/slot_filler.h"

namespace convoy::data {
namespace {

const LoaderOptions& checked(const LoaderOptions& options) {
  if (options.buffers < 2 || options.threads < 1 || options.ranks != 1)
    throw std::invalid_argument("RequestLoader: needs at least 2 buffers, 1 thread and 1 rank");
  return options;
}

}  // namespace

struct RequestLoader::State final : BatchLease::Owner {
  struct Slot {
    BatchBuffers buffers;
    Read read;
    std::vector<std::string> errors;
  };

  std::int64_t submitted = 0;
  std::vector<Slot> slots;
  std::vector<BatchFiller> fillers;                // one per thread
  std::vector<std::vector<std::uint8_t>> scratch;  // one per thread
  // Must be the last member: its threads use the others.
  SlotFiller filler;

  State(ImageShape stored, const LoaderOptions& options)
      : slots(make_slots(stored, options)),
        fillers(make_batch_fillers(ImageFormat::encoded, stored, options)),
        scratch(fillers.size()),
        filler(options.buffers, options.threads, make_fill_task(options)) {}

  static std::vector<Slot> make_slots(ImageShape stored, const LoaderOptions& options) {
    const BatchSchedule schedule(options.global_batch, options);
    std::vector<Slot> result;
    result.reserve(static_cast<std::size_t>(options.buffers));
    for (int i = 0; i < options.buffers; ++i)
      result.push_back({BatchBuffers(schedule, stored, options), nullptr, {}});
    return result;
  }

  SlotFiller::FillTask make_fill_task(const LoaderOptions& options) {
    SlotFiller::FillTask task;
    task.samples = options.global_batch;
    task.fed = true;
    task.fill = [this](int slot, std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t i = begin; i < end; ++i) fill(slots[slot], i, thread);
    };
    return task;
  }

  void fill(Slot& slot, std::int64_t i, int thread) {
    if (i >= slot.buffers.batch().valid) return slot.buffers.fill_empty(i);
    try {
      fillers[thread].fill(slot.buffers, i, i, -1, slot.read(i, scratch[thread]));
    } catch (const std::exception& error) {
      slot.errors[i] = error.what();
      slot.buffers.fill_empty(i);
    }
  }

  void give_back(int slot) noexcept override { filler.release(slot); }
};

RequestLoader::RequestLoader(int channels, const LoaderOptions& options)
    : state_(std::make_unique<State>(ImageShape{0, 0, channels}, checked(options))) {}

RequestLoader::~RequestLoader() = default;

void RequestLoader::submit(std::int64_t count, Read read) {
  State::Slot& slot = state_->slots[state_->filler.next_to_submit()];
  slot.buffers.begin({0, state_->submitted++}, count);
  slot.read = std::move(read);
  slot.errors.assign(static_cast<std::size_t>(count), {});
  state_->filler.submit();
}

BatchLease RequestLoader::next(std::vector<std::string>& errors) {
  const int index = state_->filler.acquire();
  State::Slot& slot = state_->slots[index];
  slot.read = nullptr;
  errors = std::move(slot.errors);
  return {slot.buffers.batch(), *state_, index};
}

}  // namespace convoy::data
