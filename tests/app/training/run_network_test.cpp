#include "app/training/run_network.h"

#include <gtest/gtest.h>

#include "app/errors.h"
#include "app/model/zoo/zoo.h"

namespace convoy::app {
namespace {

Network two_classifiers() {
  Network network("two", {2, 3, 4, 4});
  const LayerId main = network.add("main", Linear{5}, network.input());
  const LayerId other = network.add("other", Linear{5}, network.input());
  network.set_outputs({main, other});
  return network;
}

TEST(RunNetwork, HasTheOutputsThatHaveAWeight) {
  EXPECT_EQ(with_outputs(two_classifiers(), 2).layers().size(), 3u);
  const Network first = with_outputs(two_classifiers(), 0);
  ASSERT_EQ(first.layers().size(), 2u);
  EXPECT_EQ(first.layers()[1].name, "main");
  EXPECT_THROW(with_outputs(two_classifiers(), 3), UsageError);
}

TEST(RunNetwork, OnlyThoseOfFilesHaveAStructure) {
  Network network = make_network("lenet", {1, 3, 32, 32}, 10);
  EXPECT_EQ(structure_sha256(network), "");
  network.set_file_structure("abc");
  EXPECT_EQ(structure_sha256(network), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(RunNetwork, IsRefusedIfTheFileHasChangedSinceTheCheckpoint) {
  CheckpointState state;
  state.model = "net.onnx";
  state.options_json = R"({"model-structure-sha256": "abc"})";
  EXPECT_NO_THROW(check_structure(state, "step.h5", "abc"));
  try {
    check_structure(state, "step.h5", "def");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "net.onnx: not the network that step.h5 was trained with; its structure has the SHA-256 "
                 "def, expected abc");
  }
  state.options_json = "{}";
  EXPECT_NO_THROW(check_structure(state, "step.h5", ""));
  EXPECT_THROW(check_structure(state, "step.h5", "abc"), std::runtime_error);
}

}  // namespace
}  // namespace convoy::app
