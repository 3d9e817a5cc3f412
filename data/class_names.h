// The rules for names of classes. Stores, tables and JSON files hold the names as UTF-8 text.
#pragma once

#include <string>
#include <vector>

namespace convoy::data {

// Throws std::runtime_error if a name is not UTF-8, holds a zero byte or occurs twice. The message
// begins with `what`, the name of the source, of the file or of the attribute.
void require_class_names(const std::vector<std::string>& classes, const std::string& what);

}  // namespace convoy::data
