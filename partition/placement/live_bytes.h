// Finds the most bytes that are live at once on each device. A query lists all tensors with their
// times. It is fast if the times differ little from those of the previous query.
#pragma once

#include <vector>

#include "partition/simulation/machine.h"

namespace convoy::partition {

// Keeps the allocations and releases of the last query, sorted by time. Most of them are in the
// same order in the next query, so insertion sort is fast.
class LiveBytes {
 public:
  // The caller numbers the tensors. An output and its copies on other devices have different
  // numbers.
  LiveBytes(std::int32_t tensors, DeviceIndex devices);

  void begin_query() { ++query_; }  // starts a query: no tensor is live
  // Adds a tensor to the query, if it has more than 0 bytes. Call it at most once per tensor and
  // query.
  void add_tensor(std::int32_t tensor, DeviceIndex device, Bytes bytes, Nanoseconds from, Nanoseconds until);
  // The largest sum of bytes live at the same time in the query, and the first time of this sum.
  struct Peak {
    Bytes bytes = 0;
    Nanoseconds when = 0;
  };
  Peak peak(DeviceIndex device);

 private:
  struct Event {
    std::int64_t when = 0;  // time and kind of the event combined into one number for sorting
    Bytes change = 0;
    std::int32_t query = 0;      // number of the last query in which the event occurred
    DeviceIndex device = kNone;  // the device in whose row the event is listed
  };
  struct Listed {
    std::int64_t when;
    Bytes change;
    std::int32_t event;
  };
  void add_event(std::int32_t event, DeviceIndex device, std::int64_t when, Bytes change);
  void sort(std::vector<Listed>& row) const;

  std::int32_t query_ = 0;
  std::vector<Event> event_;              // two events per tensor
  std::vector<std::vector<Listed>> row_;  // sorted events of each device
};

}  // namespace convoy::partition
