// Writes stores whose images are kept as JPEG and PNG files.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "data/store/store_file.h"
#include "data/store/writer.h"

namespace convoy::data {
namespace {

using hdf5::check;
using hdf5::Handle;
using hdf5::own;

// The size of an HDF5 chunk in bytes. It is large, so that a reader needs only few look-ups. Data
// that fit into one chunk are stored contiguously instead, which wastes no space.
constexpr std::size_t kChunkBytes = 4 << 20;

// A temporary file without a name. It keeps images whose predecessors have not been written yet.
// The system removes it even if the process crashes.
class Spool {
 public:
  Spool(std::filesystem::path folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {
    if (folder_.empty()) folder_ = ".";
  }
  ~Spool() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  std::int64_t append(std::span<const std::uint8_t> bytes) {
    if (descriptor_ < 0) open();
    for (std::size_t done = 0; done < bytes.size();) {
      const auto written = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                    static_cast<off_t>(size_) + static_cast<off_t>(done));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("write a temporary file");
      done += static_cast<std::size_t>(written);
    }
    size_ += static_cast<std::int64_t>(bytes.size());
    return size_ - static_cast<std::int64_t>(bytes.size());
  }

  void read(std::int64_t offset, std::span<std::uint8_t> bytes) const {
    for (std::size_t done = 0; done < bytes.size();) {
      const auto got = ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(offset) + static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) fail("read a temporary file");
      done += static_cast<std::size_t>(got);
    }
  }

 private:
  void open() {
    std::string path = (folder_ / ".convoy-XXXXXX").string();
    descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor_ < 0) fail("create a temporary file");
    ::unlink(path.c_str());
  }
  [[noreturn]] void fail(const char* action) const {
    throw std::runtime_error(
        fmt::format("{}: cannot {} in {}: {}", name_, action, folder_.string(), std::strerror(errno)));
  }

  std::filesystem::path folder_;
  std::string name_;  // name of the destination, for messages
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// State of a row that is not yet written to the store: its image has not arrived, will be left out,
// or is in the temporary file (Spool) at `offset`.
struct Waiting {
  static constexpr std::int64_t kUnknown = -1, kSkipped = -2;
  std::int64_t offset = kUnknown;
  std::int32_t size = 0, label = 0;
};

struct EncodedSplit {
  std::int64_t rows = 0, next = 0;
  std::vector<Waiting> waiting;  // one entry per row; empty if all rows came in order
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint8_t> buffer;  // bytes of the chunk that is not full yet
  std::int64_t chunks = 0;
  Handle dataset;
};

}  // namespace

struct EncodedStoreWriter::State {
  StoreFile file;
  Spool spool;
  std::array<EncodedSplit, 2> splits;
  ChannelStatistics statistics;

  EncodedSplit& at(Split split) { return splits[static_cast<std::size_t>(split)]; }
  void require_row(Split split, std::int64_t row);
  void append(Split split, std::span<const std::uint8_t> bytes, std::int32_t label);
  void write_chunk(Split split);
  void wait(EncodedSplit& split, std::int64_t row, Waiting place);
  void release(Split split, bool all);
  void finish(Split split);
};

void EncodedStoreWriter::State::require_row(Split split, std::int64_t row) {
  const EncodedSplit& target = at(split);
  const bool came =
      row < target.next || (!target.waiting.empty() && row < target.rows &&
                            target.waiting[static_cast<std::size_t>(row)].offset != Waiting::kUnknown);
  if (row >= 0 && row < target.rows && !came) return;
  throw std::invalid_argument(fmt::format("EncodedStoreWriter: row {} of {}", row, target.rows));
}

void EncodedStoreWriter::State::append(Split split, std::span<const std::uint8_t> bytes, std::int32_t label) {
  EncodedSplit& target = at(split);
  target.labels.push_back(label);
  target.offsets.push_back(target.offsets.back() + static_cast<std::int64_t>(bytes.size()));
  while (!bytes.empty()) {
    if (target.buffer.size() == kChunkBytes) write_chunk(split);
    const std::size_t part = std::min(bytes.size(), kChunkBytes - target.buffer.size());
    target.buffer.insert(target.buffer.end(), bytes.begin(),
                         bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
  }
}

// Writes the buffer as the next chunk. If the chunk is the last one, it is padded with zeros beyond
// the end of the dataset.
void EncodedStoreWriter::State::write_chunk(Split split) {
  EncodedSplit& target = at(split);
  const std::string path = fmt::format("/{}/encoded", name_of(split));
  const std::string what = fmt::format("{}: {}: cannot write", file.name(), path);
  if (!target.dataset) {
    const hsize_t size = 0, most = H5S_UNLIMITED, chunk = kChunkBytes;
    const Handle space = own(H5Screate_simple(1, &size, &most), H5Sclose, what);
    const Handle creation = untimed(H5P_DATASET_CREATE, what);
    check(H5Pset_chunk(creation.get(), 1, &chunk), what);
    check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), what);
    target.dataset = own(H5Dcreate2(file.id(), path.c_str(), H5T_STD_U8LE, space.get(), H5P_DEFAULT,
                                    creation.get(), H5P_DEFAULT),
                         H5Dclose, what);
  }
  const hsize_t first = static_cast<hsize_t>(target.chunks) * kChunkBytes;
  const hsize_t size = first + target.buffer.size();
  check(H5Dset_extent(target.dataset.get(), &size), what);
  target.buffer.resize(kChunkBytes);
  check(H5Dwrite_chunk(target.dataset.get(), H5P_DEFAULT, 0, &first, kChunkBytes, target.buffer.data()),
        what);
  target.buffer.clear();
  ++target.chunks;
}

void EncodedStoreWriter::State::wait(EncodedSplit& split, std::int64_t row, Waiting place) {
  split.waiting.resize(static_cast<std::size_t>(split.rows));
  split.waiting[static_cast<std::size_t>(row)] = place;
}

// Writes the rows in Spool whose predecessors are all written. If `all` is set, rows that never
// arrived are left out instead of waited for.
void EncodedStoreWriter::State::release(Split split, bool all) {
  EncodedSplit& target = at(split);
  std::vector<std::uint8_t> bytes;
  for (; target.next < static_cast<std::int64_t>(target.waiting.size()); ++target.next) {
    const Waiting& row = target.waiting[static_cast<std::size_t>(target.next)];
    if (row.offset == Waiting::kUnknown && !all) return;
    if (row.offset < 0) continue;
    bytes.resize(static_cast<std::size_t>(row.size));
    spool.read(row.offset, bytes);
    append(split, bytes, row.label);
  }
}

void EncodedStoreWriter::State::finish(Split split) {
  release(split, true);
  EncodedSplit& target = at(split);
  if (target.labels.empty())
    throw std::runtime_error(fmt::format("{}: no {} images left", file.name(), name_of(split)));
  if (target.chunks == 0) {
    file.write_vector(split, "encoded", H5T_STD_U8LE, H5T_NATIVE_UINT8, target.buffer.size(),
                      target.buffer.data());
  } else if (!target.buffer.empty()) {
    write_chunk(split);
  }
  target.dataset.reset();
  file.write_vector(split, "offsets", H5T_STD_I64LE, H5T_NATIVE_INT64, target.offsets.size(),
                    target.offsets.data());
  file.write_vector(split, "labels", H5T_STD_I32LE, H5T_NATIVE_INT32, target.labels.size(),
                    target.labels.data());
}

EncodedStoreWriter::EncodedStoreWriter(const std::filesystem::path& destination,
                                       std::vector<std::string> classes, StoreWriter::Sizes sizes) {
  if (classes.empty() || sizes.train <= 0 || sizes.test <= 0) {
    throw std::invalid_argument(
        fmt::format("{}: a store needs classes and images in both splits, got {}, {} and {}",
                    destination.string(), classes.size(), sizes.train, sizes.test));
  }
  hdf5::LibraryLock lock;
  state_.reset(new State{StoreFile(destination, std::move(classes)),
                         Spool(destination.parent_path(), destination.string()),
                         {},
                         {}});
  state_->at(Split::train).rows = sizes.train;
  state_->at(Split::test).rows = sizes.test;
}

EncodedStoreWriter::~EncodedStoreWriter() = default;

void EncodedStoreWriter::write(Split split, std::int64_t row, std::span<const std::uint8_t> file,
                               std::int32_t label, const ChannelStatistics::Image& statistics) {
  state_->require_row(split, row);
  state_->file.require_label(label);
  if (split == Split::train) state_->statistics.add(statistics);
  hdf5::LibraryLock lock;
  EncodedSplit& target = state_->at(split);
  if (row == target.next) {
    state_->append(split, file, label);
    ++target.next;
    state_->release(split, false);
  } else {
    state_->wait(target, row, {state_->spool.append(file), static_cast<std::int32_t>(file.size()), label});
  }
}

void EncodedStoreWriter::skip(Split split, std::int64_t row) {
  state_->require_row(split, row);
  hdf5::LibraryLock lock;
  EncodedSplit& target = state_->at(split);
  if (row != target.next) return state_->wait(target, row, {Waiting::kSkipped, 0, 0});
  ++target.next;
  state_->release(split, false);
}

void EncodedStoreWriter::finish() {
  hdf5::LibraryLock lock;
  for (const Split split : {Split::train, Split::test}) state_->finish(split);
  state_->file.finish(state_->statistics);
}

}  // namespace convoy::data
