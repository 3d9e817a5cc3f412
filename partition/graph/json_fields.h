// The names of the JSON fields of task graphs, in our format and in Microsoft's.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace convoy::partition {

enum Field : std::uint8_t {
  kId,
  kName,
  kTimeUs,
  kResidentBytes,
  kOutputBytes,
  kParameterBytes,
  kPin,
  kColocate,  // the fields from kTimeUs to kColocate are in our nodes
  kFrom,
  kTo,
  kBytes,  // the fields from kFrom to kBytes are in our edges
  kFpgaLatency,
  kColorClass,
  kSupportedOnFpga,  // the fields from kFpgaLatency to kSupportedOnFpga are in Microsoft's nodes
  kSourceId,
  kDestId,
  kCost,  // the fields from kSourceId to kCost are in Microsoft's edges
  kSize,  // this field is in Microsoft's nodes and edges
  kFieldCount,
  kUnknown
};
inline constexpr std::array<std::string_view, kFieldCount> kFieldNames = {
    "id",   "name", "time_us", "resident_bytes", "output_bytes", "parameter_bytes", "pin",      "colocate",
    "from", "to",   "bytes",   "fpgaLatency",    "colorClass",   "supportedOnFpga", "sourceId", "destId",
    "cost", "size"};

enum class Section { kRoot, kNodes, kEdges, kOther };
enum class Format { kUndecided, kOurs, kMicrosoft };

inline Field field_of(std::string_view key) {
  for (std::size_t i = 0; i < kFieldNames.size(); ++i)
    if (kFieldNames[i] == key) return static_cast<Field>(i);
  return kUnknown;
}

inline bool belongs(Field field, Section section, Format format) {
  if (field == kId || field == kName) return section == Section::kNodes;
  if (format == Format::kOurs)
    return section == Section::kNodes ? field >= kTimeUs && field <= kColocate
                                      : field >= kFrom && field <= kBytes;
  if (field == kSize) return true;
  return section == Section::kNodes ? field >= kFpgaLatency && field <= kSupportedOnFpga
                                    : field >= kSourceId && field <= kCost;
}

// A JSON value that is no array and no object.
struct Value {
  bool integral = false, text = false;
  std::int64_t integer = 0;
  double real = 0;
};

}  // namespace convoy::partition
