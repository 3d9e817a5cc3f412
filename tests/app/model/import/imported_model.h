// A fixture that makes a model file and imports it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/app/model/import/model_maker.h"

namespace convoy::app::onnx_import {

class ImportedModel : public testing::Test {
 protected:
  void conv(const std::string& input, const std::string& output, const std::string& weight = "conv.weight") {
    maker.node("Conv", {input, maker.weight(weight, {4, 3, 3, 3})}, output,
               {.lists = {{"pads", {1, 1, 1, 1}}}});
  }
  void conv_net() {
    conv("x", "c");
    maker.classify("c", 4);
  }
  void expect_error(const std::string& expected) const { EXPECT_EQ(maker.error(), "net.onnx: " + expected); }
  void expect_error_with(const std::string& part) const {
    EXPECT_NE(maker.error().find(part), std::string::npos) << maker.error();
  }

  ModelMaker maker{{2, 3, 8, 8}};
};

}  // namespace convoy::app::onnx_import
