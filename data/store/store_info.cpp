// Converts StoreInfo to bytes and back. Ranks that do not open the data set receive these bytes.
// All ranks run the same program on machines with the same number formats, so numbers are copied as
// they are in memory.
#include <cstring>
#include <stdexcept>

#include "data/store/store.h"

namespace convoy::data {
namespace {

void append(std::string& bytes, const void* from, std::size_t count) {
  bytes.append(static_cast<const char*>(from), count);
}

void append_count(std::string& bytes, std::size_t count) {
  const auto value = static_cast<std::uint64_t>(count);
  append(bytes, &value, sizeof value);
}

class Parser {
 public:
  explicit Parser(std::string_view bytes) : bytes_(bytes) {}
  void read(void* to, std::size_t count) {
    if (count > bytes_.size()) throw std::runtime_error("StoreInfo: the bytes received end too early");
    std::memcpy(to, bytes_.data(), count);
    bytes_.remove_prefix(count);
  }
  std::size_t read_count() {
    std::uint64_t count = 0;
    read(&count, sizeof count);
    if (count > bytes_.size()) throw std::runtime_error("StoreInfo: a count exceeds the bytes received");
    return count;
  }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string StoreInfo::to_bytes() const {
  std::string bytes;
  append(bytes, &shape, sizeof shape);
  append(bytes, &format, sizeof format);
  append(bytes, size.data(), sizeof size);
  append_count(bytes, classes.size());
  for (const std::string& name : classes) {
    append_count(bytes, name.size());
    bytes += name;
  }
  for (const auto* values : {&mean, &std}) {
    append_count(bytes, values->size());
    append(bytes, values->data(), values->size() * sizeof(float));
  }
  return bytes;
}

StoreInfo StoreInfo::from_bytes(std::string_view bytes) {
  StoreInfo info;
  Parser parser(bytes);
  parser.read(&info.shape, sizeof info.shape);
  parser.read(&info.format, sizeof info.format);
  parser.read(info.size.data(), sizeof info.size);
  info.classes.resize(parser.read_count());
  for (std::string& name : info.classes) {
    name.resize(parser.read_count());
    parser.read(name.data(), name.size());
  }
  for (auto* values : {&info.mean, &info.std}) {
    values->resize(parser.read_count());
    parser.read(values->data(), values->size() * sizeof(float));
  }
  return info;
}

}  // namespace convoy::data
