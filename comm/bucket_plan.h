// How the flat gradient buffer is cut into the slices that are reduced together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace convoy::comm {

// A parameter's gradient in the flat buffer, in elements.
struct ParameterSegment {
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

// A contiguous slice of the flat buffer, in elements. It may be reduced once the segments from
// first_segment to last_segment, both included, are finished. A long segment spreads over several buckets.
struct Bucket {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  int first_segment = 0;
  int last_segment = 0;
};

struct BucketSizes {
  // Of every bucket but the first and the last. Reducing 45 MB between two ranks of one host by messages takes 15.4 ms in
  // buckets of 256 KiB, 13.0 to 14.2 of 1 to 4 MiB, 15.5 to 17.0 of 8 MiB and more, which no longer stay in the caches;
  // in memory that the ranks share, 6.3 ms of 256 KiB and about 4, whatever the size, from 1 MiB on. On a network 4 MiB
  // is still far above what latency costs.
  std::int64_t bytes = std::int64_t{4} << 20;
  // Of the first, so that the transfer starts early, and of the last, which has no computation left to hide
  // behind.
  std::int64_t edge_bytes = std::int64_t{1} << 20;
};

// The segments come in the order in which backward finishes them and lie in that order in the buffer; gaps
// between them (padding) are reduced along. Buckets cover all elements of the segments, in order, without overlap;
// none is empty. The plan depends on its arguments alone. Throws std::invalid_argument when segments overlap or are out of order.
std::vector<Bucket> plan_buckets(std::span<const ParameterSegment> segments, std::int64_t element_bytes,
                                 const BucketSizes& sizes = {});

}  // namespace convoy::comm
