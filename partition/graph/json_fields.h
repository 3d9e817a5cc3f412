// The names of the JSON fields of task graphs, in Convoy's format and in Microsoft's.
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
  kColocate,  // last field of nodes in Convoy's format; the first is kTimeUs
  kFrom,
  kTo,
  kBytes,  // last field of edges in Convoy's format; the first is kFrom
  kFpgaLatency,
  kColorClass,
  kSupportedOnFpga,  // last field of nodes in Microsoft's format only; the first is kFpgaLatency
  kSourceId,
  kDestId,
  kCost,  // last field of edges in Microsoft's format only; the first is kSourceId
  kSize,  // field of both nodes and edges in Microsoft's format
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

// A JSON value other than an array or an object.
struct Value {
  bool integral = false, text = false;
  std::int64_t integer = 0;
  double real = 0;
};

}  // namespace convoy::partition
