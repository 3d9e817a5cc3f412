#include "app/commands/suggest.h"

#include <gtest/gtest.h>

namespace convoy::app {
namespace {

using Names = std::vector<std::string>;

TEST(Suggest, NearestFirst) {
  EXPECT_EQ(suggest("epochz", {"epochs", "steps", "epoch"}), (Names{"epochs", "epoch"}));
  EXPECT_EQ(suggest("resnet19", {"lenet", "resnet152", "resnet18"}), (Names{"resnet18", "resnet152"}));
}

TEST(Suggest, AtMostThree) { EXPECT_EQ(suggest("net", {"net1", "net2", "net3", "net4"}).size(), 3u); }

TEST(Suggest, NothingForWordsWithLittleInCommon) {
  EXPECT_TRUE(suggest("transformer", {"lenet", "mlp"}).empty());
  EXPECT_TRUE(suggest("", {"a", "mlp"}).empty());
  EXPECT_TRUE(suggest("x", {}).empty());
}

}  // namespace
}  // namespace convoy::app
