// Simulates the time that operations take on one device. Operations that run at the same time slow
// each other down as interference_model.h predicts.
#pragma once

#include <span>
#include <vector>

#include "app/concurrency/interference_model.h"

namespace convoy::app {

class ConcurrencySimulator {
 public:
  // `caution` is a factor on the predicted slowdown of operations that run at the same time. With 1
  // the slowdown is as predicted, with 0 there is none.
  ConcurrencySimulator(const StepLoad& load, const InterferenceModel& interference, double caution = 1)
      : load_(load), interference_(interference), caution_(caution) {}

  double now() const { return now_; }
  bool idle() const { return running_.empty(); }
  bool computes() const;  // whether an operation that computes has been started and has not ended
  void start(int op, double delay_ms);
  // Advances the time to the next end of an operation. Returns all operations that end at that
  // time.
  std::vector<int> advance();
  // Returns the time at which all running operations that compute will have ended. If `more` is an
  // operation, it starts `delay_ms` from now, and the time of its end is included.
  double end_ms(int more = -1, double delay_ms = 0) const;

 private:
  struct Running {
    int op = -1;
    double delay = 0;  // milliseconds until the operation begins
    double left = 0;   // milliseconds that it still takes if it runs alone
  };
  // Advances `running` to the next begin or end of an operation. Returns the milliseconds until
  // then.
  double step(std::vector<Running>& running) const;

  const StepLoad& load_;
  const InterferenceModel& interference_;
  const double caution_;
  double now_ = 0;
  std::vector<Running> running_;
};

}  // namespace convoy::app
