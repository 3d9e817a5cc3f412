// Tests the predicted end of jobs that share a device, against times found by hand.
#include "app/sharing/makespan.h"

#include <gtest/gtest.h>

namespace convoy::app {
namespace {

TEST(CalibrationMakespan, OneJobPausesForItsCheckpoints) {
  const GroupOfJobs one{0, 10, {{1000, 60, 30}}};
  EXPECT_DOUBLE_EQ(makespan_ms({&one, 1}, 1), 1090);
  EXPECT_DOUBLE_EQ(makespan_ms({&one, 1}, 0.5), 2090) << "states are copied in half of the time";
}

// The jobs take equal turns, so the first one ends its 200 ms of steps at 400 ms. The second one
// then runs alone for 600 of the 1000 ms in all. So only 0.6 of its pauses (50 ms) cost time. The
// last checkpoint of the first job (90 ms) is hidden, that of the second (20 ms) is not.
TEST(CalibrationMakespan, PausesAreHiddenWhileAnotherJobRuns) {
  const std::vector<GroupOfJobs> groups{{0, 10, {{200, 70, 90}}}, {0, 10, {{800, 50, 20}}}};
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 1000 + 50 * 0.6 + 20);
}

// The long checkpoint of a job that ends early may be the last thing that is done.
TEST(CalibrationMakespan, ALongCheckpointMayEndLast) {
  const std::vector<GroupOfJobs> groups{{0, 10, {{200, 0, 5000}}}, {0, 10, {{800, 0, 20}}}};
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 400 + 5000);
}

// The jobs end their steps at 400 and 1000 ms. The first one reads its checkpoint until 500 ms, and
// writes it until 1500 ms. So the second one, which has read its own at 1050 ms, must wait.
TEST(CalibrationMakespan, CheckpointsShareTheDisk) {
  std::vector<GroupOfJobs> groups{{0, 10, {{200, 0, 100, 1000}}}, {0, 10, {{800, 0, 50, 300}}}};
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 1500 + 300);
  groups[0].jobs[0].writing = 500;
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 1050 + 300) << "the disk is free again";
}

// With turns of 30 and 10 ms the first group has three quarters of the time. So its 300 ms of steps
// end at 400 ms.
TEST(CalibrationMakespan, AGroupGetsTimeInProportionToItsTurns) {
  const std::vector<GroupOfJobs> groups{{0, 30, {{300, 0, 900}}}, {0, 10, {{500, 0, 0}}}};
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 400 + 900);
}

TEST(CalibrationMakespan, AHigherPriorityComesFirst) {
  const std::vector<GroupOfJobs> groups{{-1, 10, {{500, 0, 0}}}, {2, 10, {{300, 0, 600}}}};
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 900);
}

// The jobs of a group run side by side and end after 100 and 400 ms of the group's time, which is
// half of all time. The checkpoint of the first job (1000 ms) ends last.
TEST(CalibrationMakespan, JobsOfAGroupEndOneAfterTheOther) {
  const std::vector<GroupOfJobs> groups{{0, 10, {{100, 0, 1000}, {400, 0, 50}}}, {0, 10, {{400, 0, 0}}}};
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 200 + 1000);
}

// With equal turns both groups end their steps at 800 ms, and the first one's last checkpoint would
// end at 1100. So the first group must end at 500, which takes four fifths of the time until then.
TEST(CalibrationTurns, AreLongerIfThatHidesALongCheckpoint) {
  std::vector<GroupOfJobs> groups{{0, 10, {{400, 0, 300}}}, {0, 10, {{400, 0, 0}}}};
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 1100);
  EXPECT_EQ(lengthen_turns(groups, 1), (std::vector<double>{16, 4}));
  EXPECT_DOUBLE_EQ(makespan_ms(groups, 1), 800);
}

// Not all of the last checkpoints can be hidden without a long delay of the second group.
TEST(CalibrationTurns, MakeTheLastJobEndEarlier) {
  std::vector<GroupOfJobs> groups{
      {0, 10, {{500, 0, 400}}}, {0, 20, {{300, 0, 200}, {600, 0, 10}}}, {0, 5, {{400, 20, 100}}}};
  const double equal = makespan_ms(groups, 0.8);
  EXPECT_EQ(lengthen_turns(groups, 0.8), (std::vector<double>{7, 4, 5}));
  EXPECT_LT(makespan_ms(groups, 0.8), equal);
  EXPECT_GE(makespan_ms(groups, 0.8), 1500 / 0.8);
}

// Hiding the long job's checkpoint of 3 s would make the short job wait three times as long.
TEST(CalibrationTurns, DoNotLetAShortJobWaitForALongOne) {
  std::vector<GroupOfJobs> groups{{0, 10, {{36e3, 0, 3000}}}, {0, 10, {{6e3, 0, 0}}}};
  EXPECT_EQ(lengthen_turns(groups, 1), (std::vector<double>{1, 1}));
}

TEST(CalibrationTurns, AreAsTheyWereIfTheyGainNothing) {
  std::vector<GroupOfJobs> groups{{0, 10, {{500, 30, 0}}}, {2, 7, {{300, 0, 900}}}, {0, 20, {{400, 0, 0}}}};
  EXPECT_EQ(lengthen_turns(groups, 1), (std::vector<double>{1, 1, 1}));
  std::vector<GroupOfJobs> alike{{0, 7, {{100e3, 0, 0}}}, {0, 7, {{100e3, 0, 0}}}};
  EXPECT_EQ(lengthen_turns(alike, 1), (std::vector<double>{1, 1}));
  std::vector<GroupOfJobs> nearly{{0, 7, {{60e3, 0, 300}}}, {0, 7, {{60e3, 0, 299}}}};
  EXPECT_EQ(lengthen_turns(nearly, 1), (std::vector<double>{1, 1}));
  EXPECT_EQ(lengthen_turns({}, 1), std::vector<double>());
}

TEST(CalibrationMakespan, NoJobNeedsNoTime) { EXPECT_EQ(makespan_ms({}, 1), 0); }

}  // namespace
}  // namespace convoy::app
