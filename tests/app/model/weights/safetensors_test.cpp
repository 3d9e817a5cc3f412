// Tests that the reader refuses files that the format forbids, and reads the files of our writer.
#include "app/model/weights/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace convoy::app {
namespace {

std::vector<std::byte> file_of(const std::string& header, const std::vector<std::uint8_t>& data = {}) {
  const std::uint64_t length = header.size();
  std::vector<std::byte> bytes(sizeof length + header.size() + data.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + sizeof length, header.data(), header.size());
  if (!data.empty()) std::memcpy(bytes.data() + sizeof length + header.size(), data.data(), data.size());
  return bytes;
}

std::string refusal(const std::vector<std::byte>& file) {
  try {
    parse_safetensors(file);
    return "accepted";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

// Returns the header of a file with one tensor, which has these fields.
std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":)" + type + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

TEST(Safetensors, RefusesWhatTheFormatForbids) {
  const std::vector<std::uint8_t> eight(8);
  const auto with = [&](const std::string& header) { return refusal(file_of(header, eight)); };
  EXPECT_EQ(with(one(R"("F32")", "[2]", "[0,8]")), "accepted");
  EXPECT_EQ(refusal({}), "found 0 bytes, expected a safetensors file");
  EXPECT_NE(refusal(file_of("[]")).find("found no JSON object"), std::string::npos);
  EXPECT_NE(refusal(file_of("{")).find("header: not JSON"), std::string::npos);
  auto short_file = file_of("{}");
  short_file[0] = std::byte{200};
  EXPECT_NE(refusal(short_file).find("found a header of 200 bytes in a file of 10"), std::string::npos);
  short_file[6] = std::byte{1};
  EXPECT_NE(refusal(short_file).find("found a header of 281474976710856 bytes"), std::string::npos);
  EXPECT_EQ(with(one(R"("F31")", "[2]", "[0,8]")),
            R"(tensor 'w': found dtype "F31", expected F32, F16, BF16, F64, an integer or BOOL)");
  EXPECT_EQ(with(one(R"("F8_E4M3")", "[2]", "[0,8]")),
            R"(tensor 'w': found dtype "F8_E4M3", expected F32, F16, BF16, F64, an integer or BOOL)");
  EXPECT_EQ(with(one("7", "[2]", "[0,8]")),
            "tensor 'w': found dtype 7, expected F32, F16, BF16, F64, an integer or BOOL");
  EXPECT_EQ(with(one(R"("F32")", "[-2]", "[0,8]")), "tensor 'w': shape: found -2, expected a whole number");
  EXPECT_EQ(with(one(R"("F32")", "[2.5]", "[0,8]")), "tensor 'w': shape: found 2.5, expected a whole number");
  EXPECT_EQ(with(one(R"("F32")", "2", "[0,8]")), "tensor 'w': found no list of at most 16 extents in shape");
  EXPECT_EQ(with(one(R"("F32")", "[4611686018427387904,4]", "[0,8]")),
            "tensor 'w': found a shape of more than 2^64 bytes");
  EXPECT_EQ(with(one(R"("F32")", "[3]", "[0,8]")),
            "tensor 'w': data_offsets: found 8 bytes, but F32 of 3 takes 12");
  EXPECT_EQ(with(one(R"("F32")", "[2]", "[8,0]")),
            "tensor 'w': data_offsets: found 8 to 0, expected a range in the file's 8 bytes of data");
  EXPECT_EQ(with(one(R"("F32")", "[2]", "[4,12]")),
            "tensor 'w': data_offsets: found 4 to 12, expected a range in the file's 8 bytes of data");
  EXPECT_EQ(with(one(R"("F32")", "[2]", "[0]")), "tensor 'w': found no pair of numbers in data_offsets");
  EXPECT_EQ(with(R"({"w":{"dtype":"F32","shape":[2]}})"), "tensor 'w': found no data_offsets");
  EXPECT_EQ(with(R"({"w":3})"), "tensor 'w': found no JSON object");
  EXPECT_EQ(with(one(R"("F32")", "[1]", "[0,4]")), "found 4 bytes after the last tensor");
  EXPECT_EQ(with(one(R"("F32")", "[1]", "[4,8]")),
            "tensor 'w': starts at byte 4 of the data, expected 0, the end of the tensor before it");
  const std::string w = R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(with("{" + w + "," + w + "}"), "header: found tensor 'w' twice");
  EXPECT_NE(
      with("{" + w + R"(,"v":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})").find("starts at byte"),
      std::string::npos)
      << "an overlap";
}

TEST(Safetensors, ConvertsEveryTypeOfNumber) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"half":{"dtype":"F16","shape":[5],"data_offsets":[0,10]},)"
      R"("brain":{"dtype":"BF16","shape":[1],"data_offsets":[10,12]},)"
      R"("wide":{"dtype":"F64","shape":[],"data_offsets":[12,20]},)"
      R"("count":{"dtype":"I64","shape":[1],"data_offsets":[20,28]},)"
      R"("empty":{"dtype":"F32","shape":[0,4],"data_offsets":[28,28]},)"
      R"("flag":{"dtype":"BOOL","shape":[1],"data_offsets":[28,29]}})";
  // The values are 1.5, -2^-24 (the least half), -infinity, 65504 (the largest half), -0; 3; 0.1;
  // 7.
  const auto file = file_of(
      header, {0x00, 0x3e, 0x01, 0x80, 0x00, 0xfc, 0xff, 0x7b, 0x00, 0x80, 0x40, 0x40, 0x9a, 0x99, 0x99,
               0x99, 0x99, 0x99, 0xb9, 0x3f, 7,    0,    0,    0,    0,    0,    0,    0,    1});
  const auto tensors = parse_safetensors(file);
  ASSERT_EQ(tensors.size(), 6u);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tensors[0].values(), (std::vector<float>{1.5f, -0x1p-24f, -infinity, 65504.0f, -0.0f}));
  EXPECT_TRUE(std::signbit(tensors[0].values()[4]));
  EXPECT_EQ(tensors[1].values(), std::vector{3.0f});
  EXPECT_EQ(tensors[2].values(), std::vector{0.1f});
  EXPECT_EQ(tensors[2].shape_text(), "scalar");
  EXPECT_EQ(tensors[3].values(), std::vector{7.0f});
  EXPECT_TRUE(tensors[4].values().empty());
  EXPECT_EQ(tensors[4].shape_text(), "0x4");
  EXPECT_THROW(tensors[5].values(), std::runtime_error);
}

class SafetensorsFiles : public testing::Test {
 protected:
  void SetUp() override {
    path_ =
        std::filesystem::temp_directory_path() / ("convoy-" + std::to_string(::getpid()) + ".safetensors");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
};

TEST_F(SafetensorsFiles, ReadersGetWhatWritersGave) {
  const std::vector<float> a{1, 2, 3}, b{-4, 0.5f};
  const std::vector<TensorToWrite> tensors{
      {"a", {3}, a}, {"n", {}, {}, 9, true}, {"b \"quoted\"", {1, 2}, b}};
  write_safetensors(path_, tensors, {{"format", "pt"}});
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "n");
  EXPECT_EQ(file.tensors()[0].values(), std::vector{9.0f});
  EXPECT_EQ(file.tensors()[1].values(), a);
  EXPECT_EQ(file.tensors()[2].name, "b \"quoted\"");
  EXPECT_EQ(file.tensors()[2].shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(file.tensors()[2].values(), b);
  EXPECT_EQ(std::filesystem::file_size(path_) % 4, 0u);
  EXPECT_THROW(write_safetensors(path_, {{"a", {4}, a}}, {}), std::invalid_argument);
  EXPECT_THROW(write_safetensors(path_ / "no_folder", {}, {}), std::runtime_error);
}

TEST_F(SafetensorsFiles, ErrorsStartWithThePath) {
  std::ofstream(path_) << "no tensors";
  for (const auto& path : {path_, path_.parent_path(), std::filesystem::path("missing.safetensors")}) {
    try {
      SafetensorsFile file(path);
      FAIL() << path;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).find(path.string() + ": "), 0u) << error.what();
    }
  }
}

}  // namespace
}  // namespace convoy::app
