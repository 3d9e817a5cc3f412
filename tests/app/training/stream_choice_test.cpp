// Tests how many streams are chosen for members (trainings that run together) of different shapes.
// The times are made up.
#include "app/training/stream_choice.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace convoy::app {
namespace {

// Returns the numbers of streams that were tried, in order. ms_of(n) is the time of a step on n
// streams.
std::vector<int> tries(StreamChoice& choice, const std::function<double(int)>& ms_of) {
  std::vector<int> tried{choice.streams()};
  double late = 1e6;  // steps started before a change still ran on the old number of streams
  for (int step = 0, since = 0; step < 10000 && !choice.done(); ++step, ++since) {
    const double ms = since < 3 ? late : ms_of(choice.streams());
    if (!choice.finished(ms)) continue;
    tried.push_back(choice.streams());
    since = -1;
  }
  return tried;
}

TEST(StreamChoice, TakesTheFastestOfAllThatItTries) {
  StreamChoice choice(5);
  const auto ms = [](int streams) { return streams == 2 ? 20.0 : 30.0 + streams; };
  EXPECT_EQ(tries(choice, ms), (std::vector{5, 1, 2, 4, 5, 1, 2, 4, 2}));
  EXPECT_TRUE(choice.done());
  EXPECT_EQ(choice.text(), "the 5 shapes run on 2 streams: 20.00 ms a step, 1.55 times as fast as in turns");
  EXPECT_FALSE(choice.finished(1)) << "the choice stays";
}

TEST(StreamChoice, LetsShapesTakeTurnsIfThatIsFaster) {
  StreamChoice choice(2);
  EXPECT_EQ(tries(choice, [](int streams) { return 10.0 * streams; }), (std::vector{2, 1, 2, 1, 1}));
  EXPECT_EQ(choice.text(), "the 2 shapes take turns: 10.00 ms a step, and 20.00 ms side by side");
}

// In the first round, other work on the device makes two streams slow. The second round must
// decide.
TEST(StreamChoice, CountsTheFasterRound) {
  StreamChoice choice(2);
  int calls = 0;
  tries(choice, [&](int streams) { return streams == 1 ? 15.0 : ++calls <= 10 ? 50.0 : 10.0; });
  EXPECT_EQ(choice.streams(), 2);
}

}  // namespace
}  // namespace convoy::app
