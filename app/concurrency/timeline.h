// Simulates operations on one device: they start, share the device, and end.
#pragma once

#include <span>
#include <vector>

#include "app/concurrency/side_by_side.h"

namespace convoy::app {

class Timeline {
 public:
  // `caution` scales by how much operations side by side are slower than alone; 1: as predicted.
  Timeline(const StepLoad& load, const SideBySide& side_by_side, double caution = 1)
      : load_(load), side_by_side_(side_by_side), caution_(caution) {}

  double now() const { return now_; }
  bool idle() const { return running_.empty(); }
  bool computes() const;  // an operation that computes has been started and has not ended
  void start(int op, double delay_ms);
  // Moves to the time when the next operations end, and returns these.
  std::vector<int> advance();
  // Returns when the operations that compute will have ended, and `more` too if it starts now.
  double end_ms(int more = -1, double delay_ms = 0) const;

 private:
  struct Running {
    int op = -1;
    double delay = 0;  // until it begins
    double left = 0;   // as if it were alone
  };
  double step(std::vector<Running>& running) const;  // to the next beginning or end; returns milliseconds

  const StepLoad& load_;
  const SideBySide& side_by_side_;
  const double caution_;
  double now_ = 0;
  std::vector<Running> running_;
};

}  // namespace convoy::app
