#include "app/training/checkpoint/hdf5.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "app/training/checkpoint/sealed_file.h"

namespace convoy::app {

namespace hdf5 = data::hdf5;

namespace {

template <typename Number>
hid_t in_memory() {
  if constexpr (std::is_same_v<Number, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<Number, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<Number, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<Number, std::uint64_t>) return H5T_NATIVE_UINT64;
}

template <typename Number>
hid_t stored() {
  if constexpr (std::is_same_v<Number, float>) return H5T_IEEE_F32LE;
  if constexpr (std::is_same_v<Number, double>) return H5T_IEEE_F64LE;
  if constexpr (std::is_same_v<Number, std::int64_t>) return H5T_STD_I64LE;
  if constexpr (std::is_same_v<Number, std::uint64_t>) return H5T_STD_U64LE;
}

// Throws if the stored type is not the expected one, because HDF5 would silently convert text or
// half precision to numbers.
void require_type(hid_t type, hid_t expected, const std::string& what) {
  if (H5Tequal(type, expected) <= 0) throw std::runtime_error(what + ": found another type than expected");
}

hdf5::Handle space_of(std::span<const hsize_t> extents, const std::string& what) {
  const hid_t space = extents.empty()
                          ? H5Screate(H5S_SCALAR)
                          : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
  return hdf5::own(space, H5Sclose, what);
}

hdf5::Handle text_type(std::size_t size, const std::string& what) {
  auto type = hdf5::own(H5Tcopy(H5T_C_S1), H5Tclose, what);
  hdf5::check(H5Tset_size(type.get(), std::max<std::size_t>(size, 1)), what);
  hdf5::check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), what);
  hdf5::check(H5Tset_cset(type.get(), H5T_CSET_UTF8), what);
  return type;
}

kernels::Shape shape_of(std::span<const std::int64_t> extents, const std::string& what) {
  if (extents.size() > kernels::Shape::kMaxRank) {
    throw std::runtime_error(fmt::format("{}: found {} extents, expected at most {}", what, extents.size(),
                                         kernels::Shape::kMaxRank));
  }
  for (const auto extent : extents) {
    if (extent < 0) throw std::runtime_error(fmt::format("{}: found extent {}", what, extent));
  }
  switch (extents.size()) {
    case 0:
      return {};
    case 1:
      return {extents[0]};
    case 2:
      return {extents[0], extents[1]};
    case 3:
      return {extents[0], extents[1], extents[2]};
    default:
      return {extents[0], extents[1], extents[2], extents[3]};
  }
}

std::vector<hsize_t> extents_of(const kernels::Shape& shape) {
  std::vector<hsize_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(static_cast<hsize_t>(shape[axis]));
  return extents;
}

void require_valid(const SavedTensor& tensor) {
  if (tensor.name.empty() || tensor.name == "." || tensor.name.find('/') != std::string::npos) {
    throw std::invalid_argument(fmt::format("'{}' cannot name a tensor of a checkpoint", tensor.name));
  }
  if (tensor.shape.elements() != static_cast<std::int64_t>(tensor.values.size())) {
    throw std::invalid_argument(fmt::format("tensor '{}': found {} values, expected shape {}", tensor.name,
                                            tensor.values.size(), tensor.shape.to_string()));
  }
}

std::size_t estimated_bytes(const CheckpointState& state) {
  std::size_t bytes = 1 << 16;
  for (const auto* tensors : {&state.parameters, &state.statistics, &state.optimizer, &state.averages}) {
    for (const auto& tensor : *tensors) bytes += tensor.values.size() * sizeof(float) + 2048;
  }
  return bytes;
}

hdf5::Handle create_in_memory(const std::string& file, std::size_t bytes) {
  const hdf5::LibraryLock lock;
  const auto access = hdf5::own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, file);
  hdf5::check(H5Pset_fapl_core(access.get(), bytes, false), file);
  const auto creation = hdf5::own(H5Pcreate(H5P_FILE_CREATE), H5Pclose, file);
  hdf5::check(H5Pset_userblock(creation.get(), kSealBytes), file);
  // HDF5 knows open files by their names, so several files in memory need different ones.
  static int number = 0;
  const std::string name = fmt::format("checkpoint {} in memory", number++);
  return hdf5::own(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose, file);
}

}  // namespace

void Attributes::write(const std::string& name, hid_t type, hid_t space, hid_t memory_type,
                       const void* values) {
  const auto attribute = hdf5::own(H5Acreate2(object_, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                                   H5Aclose, what(name));
  if (values != nullptr) hdf5::check(H5Awrite(attribute.get(), memory_type, values), what(name));
}

void Attributes::write_text(const std::string& name, const std::string& text) {
  const auto type = text_type(text.size(), what(name));
  const auto space = space_of({}, what(name));
  write(name, type.get(), space.get(), type.get(), text.c_str());
}

template <typename Number>
void Attributes::write_number(const std::string& name, Number value) {
  const auto space = space_of({}, what(name));
  write(name, stored<Number>(), space.get(), in_memory<Number>(), &value);
}

template <typename Number>
void Attributes::write_array(const std::string& name, const std::vector<Number>& values) {
  const hsize_t extent = values.size();
  const auto space = space_of({&extent, 1}, what(name));
  write(name, stored<Number>(), space.get(), in_memory<Number>(), values.empty() ? nullptr : values.data());
}

hdf5::Handle Attributes::open(const std::string& name) const {
  if (H5Aexists(object_, name.c_str()) <= 0) throw std::runtime_error(what(name) + " is missing");
  return hdf5::own(H5Aopen(object_, name.c_str(), H5P_DEFAULT), H5Aclose, what(name));
}

std::string Attributes::read_text(const std::string& name) const {
  const auto attribute = open(name);
  const auto type = hdf5::own(H5Aget_type(attribute.get()), H5Tclose, what(name));
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0) {
    throw std::runtime_error(what(name) + ": found another type than expected");
  }
  std::string text(H5Tget_size(type.get()), '\0');
  hdf5::check(H5Aread(attribute.get(), type.get(), text.data()), what(name));
  return text.substr(0, text.find('\0'));
}

template <typename Number>
std::vector<Number> Attributes::read_array(const std::string& name) const {
  const auto attribute = open(name);
  const auto type = hdf5::own(H5Aget_type(attribute.get()), H5Tclose, what(name));
  require_type(type.get(), stored<Number>(), what(name));
  const auto space = hdf5::own(H5Aget_space(attribute.get()), H5Sclose, what(name));
  std::vector<Number> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
  if (!values.empty()) hdf5::check(H5Aread(attribute.get(), in_memory<Number>(), values.data()), what(name));
  return values;
}

template <typename Number>
Number Attributes::read_number(const std::string& name) const {
  const auto values = read_array<Number>(name);
  if (values.size() != 1) {
    throw std::runtime_error(fmt::format("{}: found {} values, expected one", what(name), values.size()));
  }
  return values[0];
}

kernels::Shape Attributes::read_shape(const std::string& name) const {
  return shape_of(read_array<std::int64_t>(name), what(name));
}

template void Attributes::write_number(const std::string&, std::int64_t);
template void Attributes::write_number(const std::string&, std::uint64_t);
template void Attributes::write_number(const std::string&, double);
template void Attributes::write_array(const std::string&, const std::vector<std::int64_t>&);
template void Attributes::write_array(const std::string&, const std::vector<float>&);
template std::int64_t Attributes::read_number(const std::string&) const;
template std::uint64_t Attributes::read_number(const std::string&) const;
template double Attributes::read_number(const std::string&) const;
template std::vector<float> Attributes::read_array(const std::string&) const;

CheckpointImage::CheckpointImage(std::string file, const CheckpointState& state)
    : file_name_(std::move(file)),
      file_(create_in_memory(file_name_, estimated_bytes(state))),
      root_(file_name_, file_.get()) {}

CheckpointImage::~CheckpointImage() {
  const hdf5::LibraryLock lock;
  file_.reset();
}

void CheckpointImage::write_tensors(const std::string& group_name, const std::vector<SavedTensor>& tensors) {
  const auto what = file_name_ + ": /" + group_name;
  // Let HDF5 keep the order in which tensors are created, which is the model's order. By default it
  // lists them by name.
  const auto creation = hdf5::own(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, what);
  hdf5::check(H5Pset_link_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
              what);
  const auto group = hdf5::own(
      H5Gcreate2(file_.get(), group_name.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), H5Gclose, what);
  for (const auto& tensor : tensors) {
    require_valid(tensor);
    const auto path = what + "/" + tensor.name;
    const auto space = space_of(extents_of(tensor.shape), path);
    const auto set = hdf5::own(H5Dcreate2(group.get(), tensor.name.c_str(), H5T_IEEE_F32LE, space.get(),
                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                               H5Dclose, path);
    if (tensor.values.empty()) continue;
    hdf5::check(H5Dwrite(set.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.values.data()),
                path);
  }
}

// Writes the texts as a dataset, because an attribute holds at most 64 KiB.
void CheckpointImage::write_texts(const std::string& dataset, const std::vector<std::string>& texts) {
  const std::string what = file_name_ + ": /" + dataset;
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  std::string characters(texts.size() * longest, '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(characters.data() + i * longest, longest);
  const auto type = text_type(longest, what);
  const hsize_t extent = texts.size();
  const auto space = space_of({&extent, 1}, what);
  const auto set = hdf5::own(H5Dcreate2(file_.get(), dataset.c_str(), type.get(), space.get(), H5P_DEFAULT,
                                        H5P_DEFAULT, H5P_DEFAULT),
                             H5Dclose, what);
  hdf5::check(H5Dwrite(set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, characters.data()), what);
}

std::span<const std::byte> CheckpointImage::finish() {
  hdf5::check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), file_name_);
  // Use the buffer of HDF5's core driver without a copy. The buffer begins with the user block,
  // which H5Fget_file_image does not count.
  void* handle = nullptr;
  hdf5::check(H5Fget_vfd_handle(file_.get(), H5P_DEFAULT, &handle), file_name_);
  const ssize_t bytes = H5Fget_file_image(file_.get(), nullptr, 0);
  hdf5::check(bytes < 0 ? -1 : 0, file_name_);
  return {*static_cast<const std::byte* const*>(handle), kSealBytes + static_cast<std::size_t>(bytes)};
}

CheckpointReader::CheckpointReader(std::string file)
    : file_name_(std::move(file)),
      file_(hdf5::own(H5Fopen(file_name_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, file_name_)),
      root_(file_name_, file_.get()) {}

std::vector<SavedTensor> CheckpointReader::read_tensors(const std::string& group_name) const {
  const auto path = file_name_ + ": /" + group_name;
  if (H5Lexists(file_.get(), group_name.c_str(), H5P_DEFAULT) <= 0)
    throw std::runtime_error(path + " is missing");
  const auto group = hdf5::own(H5Gopen2(file_.get(), group_name.c_str(), H5P_DEFAULT), H5Gclose, path);
  H5G_info_t info;
  hdf5::check(H5Gget_info(group.get(), &info), path);
  std::vector<SavedTensor> tensors;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[1024];
    const auto length = H5Lget_name_by_idx(group.get(), ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, name,
                                           sizeof name, H5P_DEFAULT);
    if (length < 0 || length >= static_cast<ssize_t>(sizeof name))
      hdf5::check(-1, path + ": name of a tensor");
    tensors.push_back(read_tensor(group.get(), path, name));
  }
  return tensors;
}

bool CheckpointReader::has(const std::string& object) const {
  return H5Lexists(file_.get(), object.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> CheckpointReader::read_texts(const std::string& dataset) const {
  const std::string what = file_name_ + ": /" + dataset;
  const auto set = hdf5::own(H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT), H5Dclose, what);
  const auto type = hdf5::own(H5Dget_type(set.get()), H5Tclose, what);
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0)
    throw std::runtime_error(what + ": found another type than expected");
  const auto space = hdf5::own(H5Dget_space(set.get()), H5Sclose, what);
  const std::size_t length = H5Tget_size(type.get());
  const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
  std::string characters(count * length, '\0');
  hdf5::check(H5Dread(set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, characters.data()), what);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = characters.substr(i * length, length);
    texts.push_back(text.substr(0, text.find('\0')));
  }
  return texts;
}

SavedTensor CheckpointReader::read_tensor(hid_t group, const std::string& path, std::string name) const {
  const auto what = path + "/" + name;
  const auto set = hdf5::own(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose, what);
  const auto type = hdf5::own(H5Dget_type(set.get()), H5Tclose, what);
  require_type(type.get(), H5T_IEEE_F32LE, what);
  const auto space = hdf5::own(H5Dget_space(set.get()), H5Sclose, what);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || rank > kernels::Shape::kMaxRank) {
    throw std::runtime_error(
        fmt::format("{}: found rank {}, expected at most {}", what, rank, kernels::Shape::kMaxRank));
  }
  hsize_t extents[kernels::Shape::kMaxRank] = {};
  hdf5::check(H5Sget_simple_extent_dims(space.get(), extents, nullptr), what);
  SavedTensor tensor;
  tensor.name = std::move(name);
  tensor.shape = shape_of(std::vector<std::int64_t>(extents, extents + rank), what);
  // Refuse a dataset whose values were never written: HDF5 would read zeros from it.
  const std::uint64_t stored = H5Dget_storage_size(set.get());
  const std::uint64_t expected = tensor.shape.elements() * sizeof(float);
  if (stored != expected) {
    throw std::runtime_error(fmt::format("{}: found {} bytes, expected {}", what, stored, expected));
  }
  tensor.values.resize(static_cast<std::size_t>(tensor.shape.elements()));
  if (!tensor.values.empty()) {
    hdf5::check(H5Dread(set.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.values.data()),
                what);
  }
  return tensor;
}

}  // namespace convoy::app
