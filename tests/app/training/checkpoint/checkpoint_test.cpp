// Tests that a checkpoint keeps every bit, and that damaged checkpoints are recognised.
#include "app/training/checkpoint/checkpoint.h"

#include <hdf5.h>

#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "app/training/checkpoint/sealed_file.h"
#include "app/training/checkpoint/sha256.h"
#include "tests/app/training/checkpoint/checkpoint_fixture.h"

namespace convoy::app {
namespace {

class Checkpoint : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    path_ = folder_ / "checkpoint.h5";
  }
  std::string load_error() {
    return error_of([&] { load_checkpoint(path_); });
  }
  // Changes the content of a checkpoint with HDF5 and then renews its seal (a checksum), as a
  // faulty program would: the seal is right, but the content is wrong.
  template <typename Edit>
  void edit(const Edit& edit) {
    save_checkpoint(path_, example_state());
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(file, 0) << "the file opens as plain HDF5";
    edit(file);
    ASSERT_GE(H5Fclose(file), 0);
    const auto content = content_of(path_);
    write_sealed(path_, std::as_bytes(std::span(content)));
  }
  std::filesystem::path path_;
};

TEST_F(Checkpoint, RoundTripKeepsEveryBit) {
  auto state = example_state();
  state.statistics.push_back(ramp("scalar", {}, 3));
  state.statistics.push_back(ramp("empty", {0, 3}, 3));
  save_checkpoint(path_, state);
  expect_same(load_checkpoint(path_), state);
}

// Jobs that share a device may save at the same time.
TEST_F(Checkpoint, ManyThreadsSaveAtTheSameTime) {
  constexpr int kThreads = 6;
  const auto state_of = [](int thread) {
    CheckpointState state;
    state.parameters.push_back(ramp("weights", {1 << 20}, static_cast<float>(thread)));
    return state;
  };
  const auto path_of = [&](int thread) { return folder_ / ("step-" + std::to_string(thread) + ".h5"); };
  std::barrier all(kThreads);
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      const CheckpointState state = state_of(thread);
      all.arrive_and_wait();
      errors[static_cast<std::size_t>(thread)] = error_of([&] { save_checkpoint(path_of(thread), state); });
    });
  for (std::thread& thread : threads) thread.join();
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(errors[static_cast<std::size_t>(thread)], "");
    expect_same(load_checkpoint(path_of(thread)), state_of(thread));
  }
}

TEST_F(Checkpoint, StateWithoutAnythingRoundTrips) {
  save_checkpoint(path_, {});
  expect_same(load_checkpoint(path_), {});
}

TEST_F(Checkpoint, KeepsTheModelsOrderOfManyTensors) {
  CheckpointState state;
  for (int i = 0; i < 300; ++i) {
    state.parameters.push_back(
        ramp("layer" + std::to_string(i * 7919 % 300), {i % 5 + 1}, static_cast<float>(i)));
  }
  save_checkpoint(path_, state);
  expect_same(load_checkpoint(path_), state);
}

// The class names of ImageNet-21k take more than the 64 KiB that an attribute of HDF5 may have.
TEST_F(Checkpoint, ManyNamesOfClassesRoundTrip) {
  CheckpointState state;
  for (int label = 0; label < 21841; ++label)
    state.class_names.push_back("n" + std::to_string(10000000 + label));
  state.class_names.back() = "";
  state.classes = std::ssize(state.class_names);
  save_checkpoint(path_, state);
  expect_same(load_checkpoint(path_), state);
}

// Files of older versions have no class names and no averages. They must still load.
TEST_F(Checkpoint, NamesOfClassesAndAveragesMayBeMissing) {
  edit([&](hid_t file) {
    for (const char* name : {"class_names", "averages"}) ASSERT_GE(H5Ldelete(file, name, H5P_DEFAULT), 0);
  });
  const CheckpointState loaded = load_checkpoint(path_);
  EXPECT_TRUE(loaded.class_names.empty() && loaded.averages.empty());
  EXPECT_FALSE(loaded.parameters.empty());
}

TEST_F(Checkpoint, AsManyNamesAsClasses) {
  auto state = example_state();
  state.class_names.pop_back();
  save_checkpoint(path_, state);
  EXPECT_EQ(load_error(), path_.string() + ": found 9 names of classes, expected 10");
}

TEST_F(Checkpoint, LargeTensorsRoundTrip) {
  CheckpointState state;
  state.parameters = {ramp("big", {512, 512, 3, 3}, 0), ramp("small", {1}, 0)};
  save_checkpoint(path_, state);
  expect_same(load_checkpoint(path_), state);
}

TEST_F(Checkpoint, CutShortAnywhereIsAnError) {
  save_checkpoint(path_, example_state());
  const auto whole = content_of(path_);
  for (std::size_t size = 0; size < whole.size(); size += size < 600 ? 13 : 97) {
    write_content(path_, whole.substr(0, size));
    const auto message = load_error();
    EXPECT_EQ(message.rfind(path_.string() + ": is ", 0), 0u) << size << " bytes: " << message;
  }
  write_content(path_, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(load_error(), path_.string() + ": is cut short or damaged: found " +
                              std::to_string(whole.size() - 513) + " bytes after its seal, expected " +
                              std::to_string(whole.size() - 512));
  write_content(path_, whole + "x");
  EXPECT_NE(load_error(), "");
}

TEST_F(Checkpoint, EveryFlippedByteIsAnError) {
  save_checkpoint(path_, example_state());
  const auto whole = content_of(path_);
  for (std::size_t at = 0; at < whole.size(); at += at < 600 ? 1 : 11) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    write_content(path_, damaged);
    const auto message = load_error();
    EXPECT_EQ(message.rfind(path_.string() + ": is ", 0), 0u) << "byte " << at << ": " << message;
  }
  write_content(path_, whole);
  EXPECT_EQ(load_error(), "");
}

TEST_F(Checkpoint, ForeignFilesAreNamed) {
  EXPECT_EQ(load_error(), path_.string() + ": cannot be read: No such file or directory");
  const auto foreign = path_.string() + ": is not a Convoy checkpoint";
  write_content(path_, "");
  EXPECT_EQ(load_error(), foreign);
  write_content(path_, std::string(5000, 'x'));
  EXPECT_EQ(load_error(), foreign);
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_EQ(load_error(), foreign);
  path_ = folder_;
  EXPECT_EQ(load_error(), path_.string() + ": cannot be read: Is a directory");
}

TEST_F(Checkpoint, MissingPartsAreNamed) {
  for (const char* group : {"parameters", "statistics", "optimizer"}) {
    edit([&](hid_t file) { H5Ldelete(file, group, H5P_DEFAULT); });
    EXPECT_EQ(load_error(), path_.string() + ": /" + group + " is missing");
  }
  for (const char* name : {"format", "model", "classes", "input_shape", "epoch", "step", "sample", "seed",
                           "best_accuracy", "mean", "std", "options"}) {
    edit([&](hid_t file) { H5Adelete(file, name); });
    EXPECT_EQ(load_error(), path_.string() + ": attribute '" + name + "' is missing");
  }
}

void replace_tensor(hid_t file, hid_t type, std::vector<hsize_t> extents) {
  H5Ldelete(file, "parameters/a.bias", H5P_DEFAULT);
  const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
  H5Dclose(H5Dcreate2(file, "parameters/a.bias", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
}

TEST_F(Checkpoint, TensorsOfTheWrongKindAreNamed) {
  const auto tensor = path_.string() + ": /parameters/a.bias";
  edit([&](hid_t file) { replace_tensor(file, H5T_IEEE_F64LE, {4}); });
  EXPECT_EQ(load_error(), tensor + ": found another type than expected");
  edit([&](hid_t file) { replace_tensor(file, H5T_IEEE_F32LE, {1, 1, 1, 2, 2}); });
  EXPECT_EQ(load_error(), tensor + ": found rank 5, expected at most 4");
  edit([&](hid_t file) { replace_tensor(file, H5T_IEEE_F32LE, {4}); });
  EXPECT_EQ(load_error(), tensor + ": found 0 bytes, expected 16") << "never written: HDF5 would read zeros";
  edit([&](hid_t file) {
    H5Ldelete(file, "parameters/a.bias", H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "parameters/a.bias", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  });
  EXPECT_EQ(load_error().rfind(tensor + ": ", 0), 0u) << load_error();
}

TEST_F(Checkpoint, AnotherFormatIsRefused) {
  edit([&](hid_t file) {
    const hid_t attribute = H5Aopen(file, "format", H5P_DEFAULT);
    const std::int64_t format = 2;
    H5Awrite(attribute, H5T_NATIVE_INT64, &format);
    H5Aclose(attribute);
  });
  EXPECT_EQ(load_error(), path_.string() + ": found format 2, expected 1");
}

ModelFingerprint fingerprint_of(const CheckpointState& state) {
  ModelFingerprint result{state.model, state.classes, state.input_shape, {}, {}, {}, {}};
  for (const auto& tensor : state.parameters) result.parameters.push_back(tensor);
  for (const auto& tensor : state.statistics) result.statistics.push_back(tensor);
  for (const auto& tensor : state.optimizer) result.optimizer.push_back(tensor);
  for (const auto& tensor : state.averages) result.averages.push_back(tensor);
  return result;
}

TEST(CheckpointFingerprint, CheckpointOfAnotherModelIsRefused) {
  const auto state = example_state();
  const auto refusal = [&](auto change) {
    auto expected = fingerprint_of(state);
    change(expected);
    return error_of([&] { check_fingerprint("c.h5", state, expected); });
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_EQ(refusal([](auto& e) { e.optimizer.clear(); }), "") << "evaluation needs no optimizer";
  EXPECT_EQ(refusal([](auto& e) { e.averages.clear(); }), "") << "a run without --ema needs no averages";
  EXPECT_EQ(refusal([](auto& e) { e.averages[3].name = "other"; }),
            "c.h5: average 3: found 'stem.running_var', expected 'other'");
  EXPECT_EQ(refusal([](auto& e) { e.model = "lenet"; }),
            "c.h5: is a checkpoint of model 'resnet18' with 10 classes, expected 'lenet' with 10");
  EXPECT_EQ(refusal([](auto& e) { e.classes = 100; }),
            "c.h5: is a checkpoint of model 'resnet18' with 10 classes, expected 'resnet18' with 100");
  EXPECT_EQ(refusal([](auto& e) {
              e.input_shape = {1, 28, 28};
            }),
            "c.h5: was trained on images of shape 3x32x32, expected 1x28x28");
  EXPECT_EQ(refusal([](auto& e) {
              e.parameters[0].shape = {4, 3, 3, 3};
            }),
            "c.h5: parameter 'stem.weight': found shape 4x3x2x2, expected 4x3x3x3");
  EXPECT_EQ(refusal([](auto& e) { std::swap(e.parameters[0], e.parameters[1]); }),
            "c.h5: parameter 0: found 'stem.weight', expected 'a.bias'");
  EXPECT_EQ(refusal([](auto& e) {
              e.parameters.push_back({"head.weight", {2}});
            }),
            "c.h5: parameter 2: found 'nothing', expected 'head.weight'");
  EXPECT_EQ(refusal([](auto& e) { e.statistics.pop_back(); }),
            "c.h5: statistic 'stem.running_var' is unknown to the model");
  EXPECT_EQ(refusal([](auto& e) { e.optimizer[0].name = "stem.weight.variance"; }),
            "c.h5: optimizer tensor 0: found 'stem.weight.momentum', expected 'stem.weight.variance'");
}

TEST_F(Checkpoint, ProgrammerErrorsLeaveNoFile) {
  auto state = example_state();
  state.parameters[0].values.pop_back();
  EXPECT_THROW(save_checkpoint(path_, state), std::invalid_argument);
  for (const char* name : {"", ".", "a/b"}) {
    state = example_state();
    state.parameters[0].name = name;
    EXPECT_THROW(save_checkpoint(path_, state), std::invalid_argument) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST(Sha256, KnownValues) {
  Sha256 abc;
  abc.update("a", 1);
  abc.update("bc", 2);
  EXPECT_EQ(abc.hex_digest(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256().hex_digest(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, ParametersAreTheirFloatsInOrder) {
  // The expected digest is hashlib.sha256(struct.pack('<6f', 1, -2.5, 0.15625, 0, -0.0,
  // FLT_MAX)).hexdigest() in Python.
  const std::vector<SavedTensor> parameters{
      {{"b", {2, 1}}, {1.0f, -2.5f}},
      {{"a", {4}}, {0.15625f, 0.0f, -0.0f, std::numeric_limits<float>::max()}}};
  EXPECT_EQ(parameters_sha256(parameters),
            "789f21270ce1d4b17e9a3d06bf26fa961036ede5724688d743803e69562e09cf");
  auto other = parameters;
  other[1].values[1] = -0.0f;
  EXPECT_NE(parameters_sha256(other), parameters_sha256(parameters)) << "bits count, not values";
}

}  // namespace
}  // namespace convoy::app
