#include "partition/graph/read_task_graph.h"

#include <string>
#include <string_view>
#include <system_error>

#include "partition/graph/pardnn_folder.h"
#include "partition/graph/pipedream.h"
#include "partition/graph/piper.h"
#include "partition/graph/read_text.h"

namespace convoy::partition {

TaskGraph read_task_graph(const std::filesystem::path& path, const ReadOptions& options) {
  std::error_code none;  // ignored: a path that cannot be examined is not a folder
  if (std::filesystem::is_directory(path, none)) return read_pardnn_folder(path);
  const std::string text = read_text(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  if (first != std::string::npos && text[first] != '{' && line.find(" -- ") != std::string_view::npos)
    return parse_pipedream_profile(text, path.string());
  constexpr std::size_t kBeginning = 64 << 10;
  if (std::string_view(text).substr(0, kBeginning).find("\"TMPCs\"") != std::string_view::npos)
    return parse_piper_input(text, path.string());
  return parse_task_graph_json(text, path.string(), options);
}

}  // namespace convoy::partition
