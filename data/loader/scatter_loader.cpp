#include "data/loader/scatter_loader.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "data/loader/batch_buffers.h"
#include "data/loader/pipeline.h"
#include "data/loader/schedule.h"

namespace convoy::data {
namespace {

constexpr int kAhead = 2;  // batches scattered before the first is handed out
constexpr std::size_t kRecordAlignment = 16;

// One sample on its way: this header, then the pixels, then bytes up to the alignment.
struct RecordHeader {
  std::int64_t sample;
  std::int32_t label;
  std::int32_t unused;
};

std::size_t record_bytes_of(ImageShape shape) {
  const std::size_t bytes = sizeof(RecordHeader) + static_cast<std::size_t>(shape.bytes());
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

// Rank 0's side: whole global batches as records. As the ranks' slices are consecutive in the batch, so are
// they here.
class RecordReader {
 public:
  RecordReader(std::shared_ptr<const ImageSet> set, const BatchSchedule& schedule,
               const LoaderOptions& options)
      : set_(std::move(set)),
        schedule_(schedule),
        record_bytes_(record_bytes_of(set_->shape())),
        slots_(static_cast<std::size_t>(kAhead),
               std::vector<std::byte>(static_cast<std::size_t>(schedule.global_batch()) * record_bytes_)),
        positions_(slots_.size()),
        pipeline_(kAhead, options.threads, make_work()) {}

  const std::byte* acquire() {
    slot_ = pipeline_.acquire();
    return slots_[static_cast<std::size_t>(slot_)].data();
  }
  void release() { pipeline_.release(slot_); }

 private:
  Pipeline::Work make_work() {
    Pipeline::Work work;
    work.samples = schedule_.global_batch();
    work.block = samples_per_block(set_->shape());
    work.prepare = [this](int slot, std::int64_t number) {
      positions_[static_cast<std::size_t>(slot)] = schedule_.position(number);
    };
    work.fill = [this](int slot, std::int64_t begin, std::int64_t end, int) {
      fill(static_cast<std::size_t>(slot), begin, end);
    };
    return work;
  }

  void fill(std::size_t slot, std::int64_t begin, std::int64_t end) {
    const Position position = positions_[slot];
    end = std::min(end, schedule_.global_valid(position));
    for (std::int64_t i = begin; i < end; ++i) {
      std::byte* record = slots_[slot].data() + static_cast<std::size_t>(i) * record_bytes_;
      RecordHeader header{};
      schedule_.samples(position, i, 1, &header.sample);
      header.label = set_->label(header.sample);
      std::memcpy(record, &header, sizeof header);
      auto* pixels = reinterpret_cast<std::uint8_t*>(record + sizeof header);
      const auto image = set_->stored(header.sample, {pixels, static_cast<std::size_t>(set_->largest_bytes())});
      if (image.data() != pixels) std::memcpy(pixels, image.data(), image.size());
    }
  }

  std::shared_ptr<const ImageSet> set_;
  BatchSchedule schedule_;
  std::size_t record_bytes_;
  std::vector<std::vector<std::byte>> slots_;
  std::vector<Position> positions_;
  int slot_ = -1;
  Pipeline pipeline_;  // last: its threads use what stands above
};

const LoaderOptions& checked(const LoaderOptions& options, const ImageSet* set, std::int64_t size,
                             ImageShape shape) {
  if (options.buffers < kAhead + 1 || options.threads < 1) {
    throw std::invalid_argument("ScatterLoader: needs at least 3 buffers and 1 thread");
  }
  if ((set != nullptr) != (options.rank == 0) ||
      (set != nullptr && (set->size() != size || set->shape() != shape))) {
    throw std::invalid_argument(
        "ScatterLoader: rank 0, and only rank 0, needs the set that size and shape describe");
  }
  return options;
}

}  // namespace

struct ScatterLoader::State final : BatchLease::Owner {
  int rank, ranks;
  BatchSchedule schedule;
  Scatter scatter;
  std::size_t record_bytes;
  std::vector<BatchBuffers> slots;
  std::vector<std::vector<std::byte>> records;  // received, by slot
  std::vector<BatchFiller> fillers;
  std::optional<RecordReader> reader;  // on rank 0
  std::vector<int> counts, displacements;
  std::int64_t scattered = 0;
  double scatter_ms = 0;
  Pipeline pipeline;  // last: its threads use what stands above

  State(std::shared_ptr<const ImageSet> set, std::int64_t size, ImageShape shape,
        const LoaderOptions& options, Scatter collective)
      : rank(options.rank),
        ranks(options.ranks),
        schedule(size, options),
        scatter(std::move(collective)),
        record_bytes(record_bytes_of(shape)),
        fillers(make_batch_fillers(shape, options)),
        pipeline(options.buffers, options.threads, make_work(shape)) {
    slots.reserve(static_cast<std::size_t>(options.buffers));
    for (int i = 0; i < options.buffers; ++i) {
      slots.emplace_back(schedule, shape, options);
      records.emplace_back(static_cast<std::size_t>(schedule.capacity()) * record_bytes);
    }
    if (set != nullptr) reader.emplace(std::move(set), schedule, options);
  }

  Pipeline::Work make_work(ImageShape shape) {
    Pipeline::Work work;
    work.samples = schedule.capacity();
    work.block = samples_per_block(shape);
    work.fed = true;
    work.fill = [this](int slot, std::int64_t begin, std::int64_t end, int thread) {
      fill(static_cast<std::size_t>(slot), begin, end, static_cast<std::size_t>(thread));
    };
    return work;
  }

  void fill(std::size_t slot, std::int64_t begin, std::int64_t end, std::size_t thread) {
    BatchBuffers& buffers = slots[slot];
    for (std::int64_t i = begin; i < end; ++i) {
      if (i >= buffers.batch.valid) {
        BatchFiller::fill_empty(buffers, i);
        continue;
      }
      const std::byte* record = records[slot].data() + static_cast<std::size_t>(i) * record_bytes;
      RecordHeader header{};
      std::memcpy(&header, record, sizeof header);
      fillers[thread].fill(buffers, i, header.sample, header.label,
                           reinterpret_cast<const std::uint8_t*>(record + sizeof header));
    }
  }

  // Scatters the next batch and hands what arrived to the threads.
  void scatter_next() {
    const auto slot = static_cast<std::size_t>(pipeline.next_to_submit());
    const Position position = schedule.position(scattered);
    slots[slot].begin(schedule, position, rank);
    ScatterArguments arguments;
    arguments.record_bytes = record_bytes;
    arguments.receive = records[slot].data();
    arguments.receive_count = slots[slot].batch.valid;
    if (reader) {
      counts.clear();
      displacements.clear();
      for (int r = 0; r < ranks; ++r) {
        const Slice slice = schedule.slice(position, r);
        counts.push_back(static_cast<int>(slice.count));
        displacements.push_back(static_cast<int>(slice.first));
      }
      arguments.send = reader->acquire();
      arguments.counts = counts;
      arguments.displacements = displacements;
    }
    scatter(arguments);
    if (reader) reader->release();
    ++scattered;
    pipeline.submit();
  }

  // Always the same number of collectives a call: were it to depend on how far this rank's threads are, ranks
  // could wait for each other in different collectives.
  int next() {
    const auto start = std::chrono::steady_clock::now();
    for (int i = scattered == 0 ? 0 : kAhead - 1; i < kAhead; ++i) scatter_next();
    scatter_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return pipeline.acquire();
  }

  void give_back(int slot) noexcept override { pipeline.release(slot); }
};

ScatterLoader::ScatterLoader(std::shared_ptr<const ImageSet> set, std::int64_t size, ImageShape shape,
                             const LoaderOptions& options, Scatter scatter) {
  checked(options, set.get(), size, shape);
  state_ = std::make_unique<State>(std::move(set), size, shape, options, std::move(scatter));
}

ScatterLoader::~ScatterLoader() = default;

BatchLease ScatterLoader::next() {
  const int slot = state_->next();
  return {state_->slots[static_cast<std::size_t>(slot)].batch, *state_, slot};
}

std::int64_t ScatterLoader::steps_per_epoch() const { return state_->schedule.steps_per_epoch(); }

double ScatterLoader::wait_ms() const { return state_->scatter_ms + state_->pipeline.wait_ms(); }

}  // namespace convoy::data
