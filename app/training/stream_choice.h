// Chooses on how many streams of a GPU the shapes of members (member_keys.h) run, by the times of
// the run's own steps. Shapes on different streams run side by side; those of one stream take
// turns. So the choice is never slower than one after the other, up to the noise of the times.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace convoy::app {

class StreamChoice {
 public:
  // Begins with a stream for each shape. Tries that, the powers of two below, and one stream.
  explicit StreamChoice(int shapes);

  // Returns the number of streams for the next steps.
  int streams() const { return tries_[at_].streams; }
  // Takes the milliseconds of the newest finished step. Returns whether streams() has changed, or
  // whether the choice is made now.
  bool finished(double step_ms);
  bool done() const { return done_; }
  // Returns one line about the choice, once it is made.
  std::string text() const;

 private:
  struct Try {
    int streams;
    double step_ms = std::numeric_limits<double>::infinity();  // the least mean of its rounds
  };

  const int shapes_;
  std::vector<Try> tries_;
  std::size_t at_ = 0;
  int round_ = 0;
  std::int64_t steps_ = 0;  // steps of this round that are finished, with those that are left out
  double sum_ms_ = 0;
  bool done_ = false;
};

}  // namespace convoy::app
