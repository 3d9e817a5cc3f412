// Chooses on how many streams of a GPU the shapes of members run (member_keys.h), by the times of
// the run's own steps. Shapes on different streams run at the same time. Shapes on one stream take
// turns, step by step. One stream is among the choices, so the choice is never slower than turns,
// up to the noise of the times.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace convoy::app {

class StreamChoice {
 public:
  // Tries a stream for each shape, then the smaller powers of two, and one stream.
  explicit StreamChoice(int shapes);

  // Returns the number of streams for the next steps.
  int streams() const { return tries_[at_].streams; }
  // Takes the milliseconds of the newest finished step. Returns true if streams() may have changed
  // and the sessions must be arranged anew.
  bool finished(double step_ms);
  bool done() const { return done_; }
  // Returns one line about the choice, once it is made.
  std::string text() const;

 private:
  struct Try {
    int streams;
    double step_ms = std::numeric_limits<double>::infinity();  // the mean of its fastest round
  };

  const int shapes_;
  std::vector<Try> tries_;
  std::size_t at_ = 0;
  int round_ = 0;
  std::int64_t steps_ = 0;  // finished steps of this round, also those that do not count
  double sum_ms_ = 0;
  bool done_ = false;
};

}  // namespace convoy::app
