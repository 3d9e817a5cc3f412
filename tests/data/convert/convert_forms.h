// A fixture that converts a published form of a data set and reads the result.
#pragma once

#include <gtest/gtest.h>

#include "tests/data/convert/convert_support.h"

namespace convoy::data::testing {

class ConvertForms : public ::testing::Test {
 protected:
  ConvertReport run(const std::string& source, ConvertOptions options = {}) {
    options.encoding = {Encoding::Form::keep};
    return convert(source, folder_ / "out.h5", options);
  }
  ConvertReport run_in(const std::string& source, const ConvertOptions& options = {}) {
    return run(folder_ / source, options);
  }
  EncodedStore result() const { return EncodedStore(folder_ / "out.h5"); }
  std::vector<std::string> classes() const {
    const hid_t file = H5Fopen((folder_ / "out.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t attribute = H5Aopen(file, "classes", H5P_DEFAULT), type = H5Aget_type(attribute);
    const hid_t space = H5Aget_space(attribute);
    const std::size_t width = H5Tget_size(type);
    std::string text(width * static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)), '\0');
    H5Aread(attribute, type, text.data());
    std::vector<std::string> names;
    for (std::size_t at = 0; at < text.size(); at += width)
      names.emplace_back(text.substr(at, width).c_str());
    for (const auto close : {H5Sclose(space), H5Tclose(type), H5Aclose(attribute), H5Fclose(file)})
      EXPECT_GE(close, 0);
    return names;
  }

  TemporaryFolder folder_;
};

}  // namespace convoy::data::testing
