#include "data/loader/scatter_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "data/loader/batch_buffers.h"
#include "data/loader/schedule.h"
#include "data/loader/slot_filler.h"

namespace convoy::data {
namespace {

constexpr int kAhead = 2;  // the number of batches that are scattered ahead of next()
constexpr std::int64_t kRecordAlignment = 16;

// The header of a record. Each sample is sent as one record: the header, the sample's bytes as
// stored, and padding up to a multiple of kRecordAlignment.
struct RecordHeader {
  std::int64_t sample;
  std::int64_t bytes;
  std::int32_t label;
  std::int32_t unused;
};

std::int64_t record_bytes(std::int64_t stored_bytes) {
  const auto bytes = static_cast<std::int64_t>(sizeof(RecordHeader)) + stored_bytes;
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

// Reads whole global batches on rank 0 and writes their samples as records (see RecordHeader) in
// batch order. Thus the records for one rank are consecutive.
class RecordReader {
 public:
  RecordReader(std::shared_ptr<const ImageSet> set, const BatchSchedule& schedule,
               const LoaderOptions& options)
      : set_(std::move(set)),
        schedule_(schedule),
        ranks_(options.ranks),
        slots_(kAhead),
        filler_(kAhead, options.threads, make_fill_task()) {}

  // Returns the records of the next batch and how many bytes of them each rank gets.
  ScatterArguments acquire() {
    slot_ = filler_.acquire();
    const Slot& slot = slots_[slot_];
    return {slot.records.data(), slot.counts, nullptr};
  }
  void release() { filler_.release(slot_); }

 private:
  struct Slot {
    std::vector<std::int64_t> samples;
    std::vector<std::int64_t> offsets;  // start of every record, and the end of the last
    std::vector<std::int64_t> counts;   // bytes by rank
    std::vector<std::byte> records;
  };

  SlotFiller::FillTask make_fill_task() {
    SlotFiller::FillTask task;
    task.samples = schedule_.global_batch();
    task.block = samples_per_block(set_->largest_bytes());
    task.prepare = [this](int slot, std::int64_t number) {
      prepare(slots_[slot], schedule_.position(number));
    };
    task.fill = [this](int slot, std::int64_t begin, std::int64_t end, int) {
      fill(slots_[slot], begin, end);
    };
    return task;
  }

  void prepare(Slot& slot, BatchPosition position) {
    slot.samples.resize(schedule_.global_valid(position));
    schedule_.samples(position, 0, std::ssize(slot.samples), slot.samples.data());
    slot.offsets.assign(1, 0);
    for (const std::int64_t sample : slot.samples)
      slot.offsets.push_back(slot.offsets.back() + record_bytes(set_->stored_bytes(sample)));
    slot.counts.clear();
    for (int rank = 0; rank < ranks_; ++rank) {
      const SampleRange range = schedule_.range(position, rank);
      slot.counts.push_back(slot.offsets[range.first + range.count] - slot.offsets[range.first]);
    }
    if (std::ssize(slot.records) < slot.offsets.back()) slot.records.resize(slot.offsets.back());
  }

  void fill(Slot& slot, std::int64_t begin, std::int64_t end) {
    end = std::min(end, std::ssize(slot.samples));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sample = slot.samples[i];
      std::byte* record = slot.records.data() + slot.offsets[i];
      const RecordHeader header{sample, set_->stored_bytes(sample), set_->label(sample), 0};
      std::memcpy(record, &header, sizeof header);
      auto* bytes = reinterpret_cast<std::uint8_t*>(record + sizeof header);
      const auto stored = set_->stored(sample, {bytes, static_cast<std::size_t>(header.bytes)});
      if (stored.data() != bytes) std::memcpy(bytes, stored.data(), stored.size());
    }
  }

  std::shared_ptr<const ImageSet> set_;
  BatchSchedule schedule_;
  int ranks_;
  std::vector<Slot> slots_;
  int slot_ = -1;
  // Must be the last member: its threads use the others and must end before these are destroyed.
  SlotFiller filler_;
};

const LoaderOptions& checked(const LoaderOptions& options, const ImageSet* set, const SetDescription& about) {
  if (options.buffers < kAhead + 1 || options.threads < 1) {
    throw std::invalid_argument("ScatterLoader: needs at least 3 buffers and 1 thread");
  }
  if (options.skip) throw std::invalid_argument("ScatterLoader: cannot skip an image");
  if ((set != nullptr) != (options.rank == 0) ||
      (set != nullptr &&
       (set->size() != about.size || set->shape() != about.shape || set->format() != about.format))) {
    throw std::invalid_argument("ScatterLoader: rank 0, and only rank 0, needs the set that is described");
  }
  return options;
}

}  // namespace

struct ScatterLoader::State final : BatchLease::Owner {
  // The records of a batch that this rank received.
  struct Records {
    std::vector<std::byte> bytes;
    std::vector<std::int64_t> offsets;
  };

  int rank;
  BatchSchedule schedule;
  Scatter scatter;
  std::vector<BatchBuffers> slots;
  std::vector<Records> records;  // one entry per slot
  std::vector<BatchFiller> fillers;
  std::optional<RecordReader> reader;  // set on rank 0 only
  std::int64_t scattered = 0;
  double scatter_ms = 0;
  // Must be the last member: its threads use the others and must end before these are destroyed.
  SlotFiller filler;

  State(std::shared_ptr<const ImageSet> set, const SetDescription& about, const LoaderOptions& options,
        Scatter collective)
      : rank(options.rank),
        schedule(about.size, options),
        scatter(std::move(collective)),
        records(options.buffers),
        fillers(make_batch_fillers(about.format, about.shape, options)),
        filler(options.buffers, options.threads, make_fill_task()) {
    slots.reserve(options.buffers);
    for (int i = 0; i < options.buffers; ++i) slots.emplace_back(schedule, about.shape, options);
    if (set != nullptr) reader.emplace(std::move(set), schedule, options);
  }

  SlotFiller::FillTask make_fill_task() {
    SlotFiller::FillTask task;
    task.samples = schedule.capacity();
    task.fed = true;
    task.fill = [this](int slot, std::int64_t begin, std::int64_t end, int thread) {
      fill(slot, begin, end, thread);
    };
    return task;
  }

  void fill(int slot, std::int64_t begin, std::int64_t end, int thread) {
    BatchBuffers& buffers = slots[slot];
    for (std::int64_t i = begin; i < end; ++i) {
      if (i >= buffers.batch().valid) {
        buffers.fill_empty(i);
        continue;
      }
      const std::byte* record = records[slot].bytes.data() + records[slot].offsets[i];
      RecordHeader header{};
      std::memcpy(&header, record, sizeof header);
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(record + sizeof header);
      try {
        fillers[thread].fill(buffers, i, header.sample, header.label,
                             {bytes, static_cast<std::size_t>(header.bytes)});
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("image {} of the data set: {}", header.sample, error.what()));
      }
    }
  }

  void find_records(Records& received, std::int64_t count) {
    received.offsets.clear();
    for (std::int64_t i = 0, offset = 0; i < count; ++i) {
      received.offsets.push_back(offset);
      RecordHeader header{};
      std::memcpy(&header, received.bytes.data() + offset, sizeof header);
      offset += record_bytes(header.bytes);
    }
  }

  // Scatters the next batch. The threads of this rank then decode the records that the rank
  // received.
  void scatter_next() {
    const int slot = filler.next_to_submit();
    slots[slot].begin(schedule, schedule.position(scattered), rank);
    ScatterArguments arguments;
    if (reader) arguments = reader->acquire();
    arguments.receive = &records[slot].bytes;
    scatter(arguments);
    if (reader) reader->release();
    find_records(records[slot], slots[slot].batch().valid);
    ++scattered;
    filler.submit();
  }

  // Returns the slot of the next batch. Every rank scatters equally often per call. If the number
  // depended on the progress of a rank's threads, some ranks could block in a scatter while others
  // block in another collective.
  int next() {
    const auto start = std::chrono::steady_clock::now();
    for (int i = scattered == 0 ? 0 : kAhead - 1; i < kAhead; ++i) scatter_next();
    scatter_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const int slot = filler.acquire();
    return slot;
  }

  void give_back(int slot) noexcept override { filler.release(slot); }
};

ScatterLoader::ScatterLoader(std::shared_ptr<const ImageSet> set, const SetDescription& about,
                             const LoaderOptions& options, Scatter scatter) {
  checked(options, set.get(), about);
  state_ = std::make_unique<State>(std::move(set), about, options, std::move(scatter));
}

ScatterLoader::~ScatterLoader() = default;

BatchLease ScatterLoader::next() {
  const int slot = state_->next();
  return {state_->slots[slot].batch(), *state_, slot};
}

std::int64_t ScatterLoader::steps_per_epoch() const { return state_->schedule.steps_per_epoch(); }

double ScatterLoader::wait_ms() const { return state_->scatter_ms + state_->filler.wait_ms(); }

}  // namespace convoy::data
