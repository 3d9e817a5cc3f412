// Tests suggestions of similar names. They must find obvious typos, but must not list everything.
#include "app/suggest.h"

#include <gtest/gtest.h>

namespace convoy::app {
namespace {

using Names = std::vector<std::string>;

TEST(Suggest, EditDistanceCountsSwapsAsOne) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("trian", "train"), 1);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // not 2: swapped letters must stay neighbours
  EXPECT_EQ(edit_distance("ResNet18", "resnet18"), 0);
}

TEST(Suggest, NearestFirstAtMostThree) {
  const Names models{"vgg16", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50", "lenet"};
  EXPECT_EQ(suggest("resnet8", models), (Names{"resnet18", "resnet34", "resnet50"}));
  EXPECT_EQ(suggest("lenett", models), (Names{"lenet"}));
  EXPECT_EQ(suggest("vgg", models), (Names{"vgg16"}));
  EXPECT_EQ(suggest("transformer", models), Names{});
  EXPECT_EQ(suggest("2", {"1", "3"}), Names{}) << "nothing of it is left";
}

TEST(Suggest, BeginningOfANameIsEnough) {
  EXPECT_EQ(suggest("--checkpoint", {"--checkpoint-every-epochs", "--check"}),
            (Names{"--checkpoint-every-epochs"}));
  EXPECT_EQ(suggest("x", {"xylophone"}), Names{}) << "one letter is no beginning";
}

TEST(Suggest, Sentence) {
  EXPECT_EQ(did_you_mean("lenot", {"lenet"}), "; did you mean 'lenet'?");
  EXPECT_EQ(did_you_mean("aa1", {"aa2", "aa3", "aa4", "aa5"}), "; did you mean 'aa2', 'aa3' or 'aa4'?");
  EXPECT_EQ(did_you_mean("lenot", {"vgg16"}), "");
}

}  // namespace
}  // namespace convoy::app
