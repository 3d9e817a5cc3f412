#include "data/loader/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "data/loader/batch_buffers.h"
#include "data/loader/schedule.h"
#include "data/loader/slot_filler.h"

namespace convoy::data {

namespace {

// Returns whether the loader must read stored images. For BatchOutput::transforms it reads only
// encoded images, because transforms need the image sizes, which are stored in the files.
bool reads(BatchOutput output, ImageFormat format) {
  return output == BatchOutput::images || output == BatchOutput::cuts ||
         (output == BatchOutput::transforms && format == ImageFormat::encoded);
}

}  // namespace

struct Loader::State final : BatchLease::Owner {
  std::shared_ptr<const ImageSet> set;
  int rank;
  bool reads_pixels;
  std::function<void(const std::string&)> skip;
  BatchSchedule schedule;
  std::vector<BatchBuffers> slots;
  std::vector<BatchFiller> fillers;                // one per thread
  std::vector<std::vector<std::uint8_t>> scratch;  // one per thread
  // Must be the last member: its threads use the others and must end before these are destroyed.
  SlotFiller filler;

  State(std::shared_ptr<const ImageSet> images, const LoaderOptions& options)
      : set(std::move(images)),
        rank(options.rank),
        reads_pixels(reads(options.output, set->format())),
        skip(options.skip),
        schedule(set->size(), options),
        slots(make_slots(options)),
        fillers(make_batch_fillers(set->format(), set->shape(), options)),
        scratch(fillers.size(), std::vector<std::uint8_t>(reads_pixels ? set->largest_bytes() : 0)),
        filler(options.buffers, options.threads, make_fill_task()) {}

  std::vector<BatchBuffers> make_slots(const LoaderOptions& options) const {
    std::vector<BatchBuffers> result;
    result.reserve(static_cast<std::size_t>(options.buffers));
    for (int i = 0; i < options.buffers; ++i) result.emplace_back(schedule, set->shape(), options);
    return result;
  }

  SlotFiller::FillTask make_fill_task() {
    SlotFiller::FillTask task;
    task.samples = schedule.capacity();
    task.block = samples_per_block(reads_pixels ? set->largest_bytes() : 1);
    task.prepare = [this](int slot, std::int64_t number) {
      slots[slot].begin(schedule, schedule.position(number), rank);
    };
    task.fill = [this](int slot, std::int64_t begin, std::int64_t end, int thread) {
      fill(slots[slot], begin, end, thread);
    };
    return task;
  }

  void fill(BatchBuffers& buffers, std::int64_t begin, std::int64_t end, int thread) {
    const Batch& batch = buffers.batch();
    const std::int64_t real = std::clamp<std::int64_t>(batch.valid, begin, end);
    schedule.samples(batch.position, batch.first + begin, real - begin, buffers.samples() + begin);
    for (std::int64_t i = begin; i < real; ++i) {
      try {
        fill_entry(buffers, i, buffers.samples()[i], thread);
      } catch (const std::runtime_error& error) {
        if (!skip) throw;
        // Report an unreadable image only in the first epoch, because every epoch reads it again.
        if (batch.position.epoch == 0) skip(error.what());
        buffers.fill_empty(i);
      }
    }
    for (std::int64_t i = real; i < end; ++i) buffers.fill_empty(i);
  }

  void fill_entry(BatchBuffers& buffers, std::int64_t i, std::int64_t sample, int thread) {
    std::span<const std::uint8_t> stored;
    if (reads_pixels) stored = set->stored(sample, scratch[thread]);
    try {
      fillers[thread].fill(buffers, i, sample, set->label(sample), stored);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("{}: {}", set->name(sample), error.what()));
    }
  }

  void give_back(int slot) noexcept override { filler.release(slot); }
};

namespace {

const LoaderOptions& checked(const LoaderOptions& options) {
  if (options.buffers < 2 || options.threads < 1) {
    throw std::invalid_argument("Loader: needs at least 2 buffers and 1 thread");
  }
  return options;
}

}  // namespace

Loader::Loader(std::shared_ptr<const ImageSet> set, const LoaderOptions& options)
    : state_(std::make_unique<State>(std::move(set), checked(options))) {}

Loader::~Loader() = default;

BatchLease Loader::next() {
  const int slot = state_->filler.acquire();
  return {state_->slots[slot].batch(), *state_, slot};
}

std::int64_t Loader::steps_per_epoch() const { return state_->schedule.steps_per_epoch(); }

double Loader::wait_ms() const { return state_->filler.wait_ms(); }

}  // namespace convoy::data
