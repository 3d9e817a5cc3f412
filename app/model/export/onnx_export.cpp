#include "app/model/export/onnx_export.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "app/model/export/layer_writer.h"
#include "app/model/import/model_file.h"

namespace convoy::app {
namespace {

constexpr std::int64_t kOpset = 17;     // the first opset with LayerNormalization
constexpr std::int64_t kIrVersion = 8;  // the IR version of the ONNX release with opset 17

void check_size(const std::filesystem::path& path, const Network& network) {
  const std::int64_t bytes = network.parameter_count() * std::int64_t{sizeof(float)};
  if (bytes > std::numeric_limits<std::int32_t>::max() - (std::int64_t{64} << 20))
    throw std::runtime_error(
        fmt::format("{}: {} has {} bytes of parameters, expected less than 2 GiB, the most that an ONNX file "
                    "of one piece can hold; a .safetensors file has no limit",
                    path.string(), network.name(), bytes));
}

void add_metadata(onnx::ModelProto& model, const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto& entry = *model.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

}  // namespace

std::int64_t write_onnx(const std::filesystem::path& path, const Network& network,
                        const OnnxOptions& options) {
  check_size(path, network);
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("convoy");
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
  for (const auto& [key, value] : options.metadata) add_metadata(model, key, value);
  model.mutable_graph()->set_name(network.name());
  onnx_export::LayerWriter writer(*model.mutable_graph(), network, options.fold_batch_norm);
  const std::int64_t parameters = writer.write();
  if (writer.folded() > 0)
    add_metadata(model, std::string(kFoldedBatchNorms), fmt::format("{}", writer.folded()));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const bool written = model.SerializeToOstream(&file);
  file.close();
  if (!written || !file)
    throw std::runtime_error(fmt::format("{}: cannot write: {}", path.string(), std::strerror(errno)));
  return parameters;
}

}  // namespace convoy::app
