// Tests the encodings of tensors in an ONNX file, tensors in separate files (external data), and
// truncated files.
#include "app/model/import/onnx_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/app/model/import/model_maker.h"

namespace convoy::app::onnx_import {
namespace {

using onnx::TensorProto;

class OnnxFile : public testing::Test {
 protected:
  OnnxFile()
      : folder(std::filesystem::temp_directory_path() / ("convoy_onnx_file." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder / "models");
    maker.node("Relu", {"x"}, "y");
  }
  ~OnnxFile() override { std::filesystem::remove_all(folder); }

  Constant read(const std::string& name) const {
    return maker.parse(folder / "models").initialisers.at(name);
  }
  std::string error() const {
    try {
      maker.parse(folder / "models");
      return {};
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
  template <typename T>
  TensorProto* raw(const std::string& name, std::int32_t type, const std::vector<T>& values) {
    TensorProto* tensor = maker.initialiser(name, {std::ssize(values)}, type);
    tensor->set_raw_data(values.data(), values.size() * sizeof(T));
    return tensor;
  }
  void write(const std::filesystem::path& file, const std::string& bytes) {
    std::ofstream(folder / file, std::ios::binary) << bytes;
  }
  TensorProto* external(const std::string& location, std::int64_t offset = -1, std::int64_t length = -1) {
    TensorProto* tensor = maker.initialiser("w", {2}, TensorProto::FLOAT);
    tensor->set_data_location(TensorProto::EXTERNAL);
    const auto entry = [&](const std::string& key, const std::string& value) {
      auto* added = tensor->add_external_data();
      added->set_key(key), added->set_value(value);
    };
    entry("location", location);
    if (offset >= 0) entry("offset", std::to_string(offset));
    if (length >= 0) entry("length", std::to_string(length));
    return tensor;
  }

  const std::filesystem::path folder;
  ModelMaker maker{{1, 3, 4, 4}};
};

using Reals = std::vector<float>;
using Integers = std::vector<std::int64_t>;

TEST_F(OnnxFile, RealNumbersOfEachTypeBecomeFloats) {
  raw<float>("float", TensorProto::FLOAT, {1.5f, -2});
  raw<double>("double", TensorProto::DOUBLE, {0.25, 1e-3});
  raw<std::uint16_t>("half", TensorProto::FLOAT16, {0x3e00, 0xc000, 0x0001, 0x7c00, 0xfc00, 0x8000});
  raw<std::uint16_t>("bfloat", TensorProto::BFLOAT16, {0x3fc0, 0xc000});
  EXPECT_EQ(*read("float").reals, (Reals{1.5f, -2}));
  EXPECT_EQ(*read("double").reals, (Reals{0.25f, 1e-3f}));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(*read("half").reals, (Reals{1.5f, -2, std::ldexp(1.0f, -24), infinity, -infinity, -0.0f}));
  EXPECT_EQ(*read("bfloat").reals, (Reals{1.5f, -2}));
  raw<std::uint16_t>("nan", TensorProto::FLOAT16, {0x7e00});
  EXPECT_TRUE(std::isnan((*read("nan").reals)[0]));
}

TEST_F(OnnxFile, IntegersOfEachTypeKeepTheirSign) {
  raw<std::int8_t>("int8", TensorProto::INT8, {-1, 127});
  raw<std::uint8_t>("uint8", TensorProto::UINT8, {255});
  raw<std::int16_t>("int16", TensorProto::INT16, {-300});
  raw<std::uint16_t>("uint16", TensorProto::UINT16, {65535});
  raw<std::int32_t>("int32", TensorProto::INT32, {-70000});
  raw<std::uint32_t>("uint32", TensorProto::UINT32, {4294967295u});
  raw<std::int64_t>("int64", TensorProto::INT64, {-1, std::numeric_limits<std::int64_t>::max()});
  raw<std::uint8_t>("bool", TensorProto::BOOL, {1, 0});
  EXPECT_EQ(read("int8").integers, (Integers{-1, 127}));
  EXPECT_EQ(read("uint8").integers, (Integers{255}));
  EXPECT_EQ(read("int16").integers, (Integers{-300}));
  EXPECT_EQ(read("uint16").integers, (Integers{65535}));
  EXPECT_EQ(read("int32").integers, (Integers{-70000}));
  EXPECT_EQ(read("uint32").integers, (Integers{4294967295}));
  EXPECT_EQ(read("int64").integers, (Integers{-1, std::numeric_limits<std::int64_t>::max()}));
  EXPECT_EQ(read("bool").integers, (Integers{1, 0}));
}

TEST_F(OnnxFile, ValuesMayBeInFieldsOfTheirOwn) {
  maker.initialiser("float", {2}, TensorProto::FLOAT)->add_float_data(2);
  maker.graph().mutable_initializer(0)->add_float_data(3);
  maker.initialiser("half", {1}, TensorProto::FLOAT16)->add_int32_data(0x3e00);
  maker.initialiser("bfloat", {}, TensorProto::BFLOAT16)->add_int32_data(0x3fc0);
  maker.initialiser("double", {1}, TensorProto::DOUBLE)->add_double_data(0.5);
  maker.initialiser("int8", {1}, TensorProto::INT8)->add_int32_data(-5);
  maker.initialiser("uint64", {1}, TensorProto::UINT64)->add_uint64_data(7);
  maker.initialiser("none", {0}, TensorProto::INT64);
  EXPECT_EQ(*read("float").reals, (Reals{2, 3}));
  EXPECT_EQ(*read("half").reals, (Reals{1.5f}));
  EXPECT_EQ(*read("bfloat").reals, (Reals{1.5f}));
  EXPECT_EQ(*read("double").reals, (Reals{0.5f}));
  EXPECT_EQ(read("int8").integers, (Integers{-5}));
  EXPECT_EQ(read("uint64").integers, (Integers{7}));
  EXPECT_EQ(read("none").size(), 0);
}

TEST_F(OnnxFile, ValuesThatDoNotFillTheShapeAreRefused) {
  raw<float>("w", TensorProto::FLOAT, {1, 2, 3})->set_dims(0, 4);
  EXPECT_EQ(error(), "net.onnx: tensor w: has 12 bytes, expected 16 for 4");
  maker.graph().mutable_initializer(0)->clear_raw_data();
  EXPECT_EQ(error(), "net.onnx: tensor w: has 0 values, expected 4 for 4");
  maker.graph().mutable_initializer(0)->set_dims(0, -1);
  EXPECT_NE(error().find("tensor w: found the shape -1"), std::string::npos) << error();
  maker.graph().mutable_initializer(0)->set_dims(0, std::int64_t{1} << 62);
  EXPECT_NE(error().find("elements"), std::string::npos) << error();
}

TEST_F(OnnxFile, TextsAndNewTypesAreRefused) {
  for (const std::int32_t type : {static_cast<std::int32_t>(TensorProto::STRING), 17, 99}) {
    maker.graph().clear_initializer();
    maker.initialiser("w", {1}, type);
    EXPECT_EQ(error(),
              "net.onnx: tensor w: has type " + std::to_string(type) + ", expected integers or real numbers");
  }
}

TEST_F(OnnxFile, ExternalDataAreReadFromTheFolder) {
  write("models/weights.bin", std::string("padding.") + std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  external("weights.bin", 8, 8);
  EXPECT_EQ(*read("w").reals, (Reals{1, 2}));
  std::filesystem::create_directory(folder / "models" / "deeper");
  write("models/deeper/w.bin", std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  maker.graph().clear_initializer();
  external("deeper/w.bin");
  EXPECT_EQ(*read("w").reals, (Reals{1, 2}));
}

TEST_F(OnnxFile, ExternalDataOutsideTheFolderAreRefused) {
  write("secret.bin", "12345678");
  std::filesystem::create_symlink(folder / "secret.bin", folder / "models" / "link.bin");
  std::filesystem::create_directory_symlink(folder, folder / "models" / "up");
  for (const std::string& location :
       {std::string("../secret.bin"), (folder / "secret.bin").string(), std::string("link.bin"),
        std::string("up/secret.bin"), std::string("deeper/../../secret.bin"), std::string("missing.bin"),
        std::string("."), std::string()}) {
    maker.graph().clear_initializer();
    external(location);
    EXPECT_EQ(error(), "net.onnx: tensor w: external data: found '" + location +
                           "', expected a file in the model's folder");
  }
}

TEST_F(OnnxFile, ExternalDataThatAreTooShortAreRefused) {
  write("models/weights.bin", "12345678");
  external("weights.bin", 1);
  EXPECT_EQ(error(), "net.onnx: tensor w: external data: bytes 1 to 9 of weights.bin, which has 8");
  maker.graph().clear_initializer();
  external("weights.bin", 0, 4);
  EXPECT_EQ(error(), "net.onnx: tensor w: external data: found 4 bytes, expected 8");
  maker.graph().mutable_initializer(0)->mutable_external_data(2)->set_value("-8");
  EXPECT_EQ(error(), "net.onnx: tensor w: external data: found length '-8', expected a number of bytes");
  maker.graph().mutable_initializer(0)->mutable_external_data(2)->set_value("99999999999999999999");
  EXPECT_NE(error().find("expected a number of bytes"), std::string::npos);
}

TEST_F(OnnxFile, DamagedFilesAreRefused) {
  const std::string bytes = maker.model().SerializeAsString();
  const auto parse = [](const std::string& text) {
    parse_onnx({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, "a.onnx", {});
  };
  for (const std::string& text :
       {std::string(), std::string("no protobuf"), bytes.substr(0, bytes.size() - 3)}) {
    try {
      parse(text);
      FAIL() << text.size();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "a.onnx: is not an ONNX file, or a damaged one");
    }
  }
  EXPECT_THROW(read_onnx_file(folder / "missing.onnx"), std::runtime_error);
  EXPECT_THROW(read_onnx_file(folder), std::runtime_error);
}

TEST_F(OnnxFile, UnknownFieldsAndNewVersionsAreNoHindrance) {
  maker.model().set_ir_version(99);
  maker.model().mutable_opset_import(0)->set_version(99);
  std::string bytes = maker.model().SerializeAsString();
  bytes += std::string("\xc2\x3e\x03new", 6);  // field 1000, which no version of ONNX has
  EXPECT_EQ(
      parse_onnx({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "a.onnx", {}).opset,
      99);
  maker.model().mutable_opset_import(0)->set_version(6);
  EXPECT_EQ(error(), "net.onnx: found opset 6, expected 7 or a newer one");
}

TEST_F(OnnxFile, NodesMustReadWhatExists) {
  maker.node("Relu", {"nothing"}, "z");
  EXPECT_EQ(error(), "net.onnx: node the_z (Relu): reads 'nothing', which nothing before it makes");
  maker.graph().mutable_node(1)->set_input(0, "x");
  maker.graph().mutable_node(1)->set_output(0, "y");
  EXPECT_EQ(error(), "net.onnx: node the_z (Relu): makes 'y', which exists already");
  maker.graph().mutable_node(1)->set_output(0, "z");
  maker.add_output("missing");
  EXPECT_EQ(error(), "net.onnx: output 'missing' is made by no node");
}

}  // namespace
}  // namespace convoy::app::onnx_import
