// Divides the buffer that holds all gradients into buckets: slices that are each summed over the
// ranks by one all-reduce.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace convoy::comm {

// The place of one parameter's gradient in the buffer of all gradients, in elements.
struct BucketSegment {
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

// A slice of the gradient buffer, in elements. It may be reduced as soon as the backward pass has
// computed the gradients of the parameters first_segment to last_segment. The gradient of a large
// parameter is divided among several buckets.
struct Bucket {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  int first_segment = 0;
  int last_segment = 0;
};

struct BucketSizes {
  // The size of all buckets but the first and the last. The all-reduce of 45 MB by messages between
  // two ranks of a host takes 15.4 ms in buckets of 256 KiB, 13 to 14 ms in buckets of 1 to 4 MiB,
  // and longer in larger ones. In shared memory all sizes from 1 MiB on take the same time.
  std::int64_t bytes = std::int64_t{4} << 20;
  // The size of the first and the last bucket. The reduction of a small first bucket can start
  // early. The reduction of a small last bucket ends soon after the backward pass, when no
  // computation hides it.
  std::int64_t edge_bytes = std::int64_t{1} << 20;
};

// Plans the buckets for `segments`, which must be in the order in which the backward pass computes
// them. The buckets cover all segments in this order, without overlap, and no bucket is empty. Gaps
// between segments belong to buckets, too. The same segments always give the same buckets. Throws
// std::invalid_argument if segments overlap or are out of order.
std::vector<Bucket> plan_buckets(std::span<const BucketSegment> segments, std::int64_t element_bytes,
                                 const BucketSizes& sizes = {});

}  // namespace convoy::comm
