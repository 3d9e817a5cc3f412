// Reads tensors of an ONNX file as constants.
#pragma once

#include <filesystem>

#include "app/model/import/onnx_file.h"

namespace onnx {
class TensorProto;
}

namespace convoy::app::onnx_import {

// Reads integers, booleans and real numbers in all encodings of ONNX. External data are in
// `folder`. Throws std::runtime_error that names the tensor if it has another type or if its values
// do not fill its shape.
Constant read_tensor(const onnx::TensorProto& tensor, const std::filesystem::path& folder);

}  // namespace convoy::app::onnx_import
